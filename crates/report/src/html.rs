//! The page: one HTML file that opens anywhere, without network. Code and style are built in web/ and
//! committed there, so that building the program needs no Node; the data are in the file, as compressed JSON.

use crate::{
    document::{Pages, together},
    markdown,
};
use analysis::Analysis;
use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::{Compression, write::GzEncoder};
use record::{EventLog, Run};
use std::io::{self, Write};

const CODE: &str = include_str!("../../../web/dist/page.js");
pub(crate) const STYLE: &str = include_str!("../../../web/dist/page.css");

/// What the file may do: run its own code, and nothing from anywhere else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";

/// A run for the page.
#[derive(Clone, Copy, Debug)]
pub struct PageRun<'a> {
    /// The run.
    pub run: &'a Run,
    /// What may be said of it.
    pub analysis: &'a Analysis,
    /// The event logs that it has, by cell.
    pub logs: &'a [(usize, EventLog)],
}

/// The page of one run, or of two that are compared. What is in the runs can become text on the page, and
/// never markup: it is inside base64, or escaped.
pub fn html(runs: &[PageRun]) -> io::Result<String> {
    page(runs, "", POLICY)
}

/// The same while a run goes on: it asks where it came from for [`packed`] data, again and again.
pub fn live_html(runs: &[PageRun]) -> io::Result<String> {
    page(runs, " data-live=\"true\"", &format!("{POLICY}; connect-src 'self'"))
}

/// The data of a page as JSON, compressed, in base64.
pub fn packed(runs: &[PageRun]) -> io::Result<String> {
    let documents =
        runs.iter().map(|it| crate::document(it.run, it.analysis).with_requests(it.logs)).collect();
    let together = match runs {
        [one, other] => Some(together((one.run, one.analysis), (other.run, other.analysis))),
        _ => None,
    };
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&serde_json::to_vec(&Pages { documents, together })?)?;
    Ok(BASE64_STANDARD.encode(packed.finish()?))
}

fn page(runs: &[PageRun], live: &str, policy: &str) -> io::Result<String> {
    let data = packed(runs)?;
    let names: Vec<&str> = runs.iter().map(|it| it.run.name.as_str()).collect();
    let title = escaped(&names.join(" and "));
    // For browsers without scripts, and for programs that index.
    let text: Vec<String> = runs.iter().map(|it| escaped(&markdown(it.run, it.analysis))).collect();
    let text = text.join("\n\n");
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"{live}>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <div id=\"app\"><noscript><pre>{text}</pre></noscript></div>\n\
         <script type=\"application/gzip+base64\" id=\"data\">{data}</script>\n\
         <script>{CODE}</script>\n</body>\n</html>\n"
    ))
}

/// Text in HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let text = "<script>alert('&\"')</script>";
        let safe = escaped(text);
        assert_eq!(safe, "&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;");
        assert!(!CODE.contains("</script"), "the code would end itself");
        assert!(!STYLE.contains("</style"));
    }
}
