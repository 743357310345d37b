// Elements are made here alone, and text is always text: nothing in a run file can become markup.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
  return element;
}

/** An HTML element. Attributes whose names begin with "on" are listeners. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

let ids = 0;

/** An id that no other element has. */
export function uniqueId(stem: string): string {
  ids += 1;
  return `${stem}-${ids}`;
}

/** A labelled choice; `change` is called with the chosen index. */
export function choice(label: string, options: string[], chosen: number, change: (index: number) => void): HTMLElement {
  const id = uniqueId("choice");
  const select = h(
    "select",
    { id, onchange: () => change(select.selectedIndex) },
    ...options.map((text, index) => h("option", { selected: index === chosen }, text)),
  );
  return h("span", { class: "choice" }, h("label", { for: id }, label), select);
}

/** A button. */
export function button(text: string, click: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return h("button", { type: "button", onclick: click, ...attributes }, text);
}

/** Puts text on the clipboard, and says so on the button. Pages from files may not use the clipboard API. */
export async function copy(text: string, from: HTMLButtonElement): Promise<void> {
  const was = from.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { class: "off-screen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  from.textContent = "Copied";
  setTimeout(() => (from.textContent = was), 1500);
}
