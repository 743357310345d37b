//! What is drawn on: shapes and text, in units of which a picture is [`WIDTH`] wide.

use flate2::{Compression, write::ZlibEncoder};
use std::io::{self, Write};
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Rect, Transform};
use ttf_parser::{Face, OutlineBuilder};

/// Units across a picture.
pub const WIDTH: f32 = 800.0;
/// Pixels a unit: a picture that a chat shows at half its width is still sharp.
const SCALE: f32 = 1.5;

const REGULAR: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold.ttf");
/// Stands for a character that the font lacks.
const UNKNOWN: char = '\u{fffd}';

/// A colour: red, green, blue.
pub type Colour = [u8; 3];

/// How text is set.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Size of the font, in units.
    pub size: f32,
    pub bold: bool,
    pub colour: Colour,
}

/// The fonts of the program: what a host has does not change a picture.
pub struct Fonts {
    regular: Face<'static>,
    bold: Face<'static>,
}

impl Fonts {
    pub fn embedded() -> io::Result<Fonts> {
        let face = |bytes| Face::parse(bytes, 0).map_err(io::Error::other);
        Ok(Fonts { regular: face(REGULAR)?, bold: face(BOLD)? })
    }

    fn face(&self, style: Style) -> &Face<'static> {
        if style.bold { &self.bold } else { &self.regular }
    }

    /// How wide text is, in units.
    pub fn width(&self, text: &str, style: Style) -> f32 {
        let face = self.face(style);
        let advances = text.chars().filter_map(|c| face.glyph_hor_advance(glyph(face, c)?));
        advances.map(f32::from).sum::<f32>() * style.size / f32::from(face.units_per_em())
    }

    /// The text; of one that a width has no room for, its beginning and its end: what tells one label from
    /// another is often its end.
    pub fn cut(&self, text: &str, style: Style, width: f32) -> String {
        if self.width(text, style) <= width {
            return text.to_owned();
        }
        let all: Vec<char> = text.chars().collect();
        let without = |left_out: usize| {
            let start = (all.len() - left_out) / 3;
            let (first, last) = (&all[..start], &all[start + left_out..]);
            first.iter().chain(&['…']).chain(last).collect::<String>()
        };
        let shortened = (1..=all.len()).map(without);
        shortened.into_iter().find(|it| self.width(it, style) <= width).unwrap_or_default()
    }

    /// Lines of at most a width; a word that is longer is cut.
    pub fn wrap(&self, text: &str, style: Style, width: f32) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        // A number stays with its sign for percent.
        let text = text.replace(" %", "\u{a0}%");
        for word in text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
            match lines.last_mut() {
                Some(line) if self.width(&format!("{line} {word}"), style) <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(self.cut(word, style, width)),
            }
        }
        lines
    }
}

fn glyph(face: &Face, c: char) -> Option<ttf_parser::GlyphId> {
    face.glyph_index(c).or_else(|| face.glyph_index(UNKNOWN))
}

/// A sheet.
pub struct Paper<'a> {
    pixels: Pixmap,
    fonts: &'a Fonts,
}

impl<'a> Paper<'a> {
    /// A white one. Fails when the height is none.
    pub fn new(height: f32, fonts: &'a Fonts) -> io::Result<Paper<'a>> {
        let [w, h] = [WIDTH, height].map(|units| (units * SCALE).ceil() as u32);
        let mut pixels =
            Pixmap::new(w, h).ok_or_else(|| io::Error::other("no picture is so high"))?;
        pixels.fill(Color::WHITE);
        Ok(Paper { pixels, fonts })
    }

    pub fn rect(&mut self, (x, y): (f32, f32), (width, height): (f32, f32), colour: Colour) {
        if let Some(rect) = Rect::from_xywh(x, y, width.max(0.0), height) {
            let transform = Transform::from_scale(SCALE, SCALE);
            self.pixels.fill_rect(rect, &paint(colour), transform, None);
        }
    }

    pub fn dot(&mut self, x: f32, y: f32, radius: f32, colour: Colour) {
        if let Some(circle) = PathBuilder::from_circle(x, y, radius) {
            self.fill(&circle, colour);
        }
    }

    /// Text whose base line begins at a point.
    pub fn text(&mut self, (x, y): (f32, f32), text: &str, style: Style) {
        let face = self.fonts.face(style);
        let em = style.size / f32::from(face.units_per_em());
        let mut pen = Pen { path: PathBuilder::new(), x, y, em };
        for glyph in text.chars().filter_map(|c| glyph(face, c)) {
            // A glyph without an outline is a space.
            let _ = face.outline_glyph(glyph, &mut pen);
            pen.x += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * em;
        }
        if let Some(path) = pen.path.finish() {
            self.fill(&path, style.colour);
        }
    }

    /// Text that ends at a point.
    pub fn text_to(&mut self, (x, y): (f32, f32), text: &str, style: Style) {
        self.text((x - self.fonts.width(text, style), y), text, style);
    }

    /// Text around a point.
    pub fn text_around(&mut self, (x, y): (f32, f32), text: &str, style: Style) {
        self.text((x - self.fonts.width(text, style) / 2.0, y), text, style);
    }

    fn fill(&mut self, path: &tiny_skia::Path, colour: Colour) {
        let transform = Transform::from_scale(SCALE, SCALE);
        self.pixels.fill_path(path, &paint(colour), FillRule::Winding, transform, None);
    }

    /// As a PNG: 8 bits each of red, green and blue (RFC 2083).
    pub fn png(self) -> io::Result<Vec<u8>> {
        let (width, height) = (self.pixels.width(), self.pixels.height());
        // Each line begins with its filter: none, since most of a picture is one colour.
        let mut lines = Vec::with_capacity(((3 * width + 1) * height) as usize);
        for line in self.pixels.data().chunks_exact(4 * width as usize) {
            lines.push(0);
            // The sheet is opaque: no alpha is lost.
            lines.extend(line.chunks_exact(4).flat_map(|pixel| &pixel[..3]));
        }
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(&lines)?;
        let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
        header.extend([8, 2, 0, 0, 0]);
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, content) in
            [(b"IHDR", header), (b"IDAT", packed.finish()?), (b"IEND", Vec::new())]
        {
            png.extend((content.len() as u32).to_be_bytes());
            let named = [kind.as_slice(), &content].concat();
            png.extend(&named);
            png.extend(crc32fast::hash(&named).to_be_bytes());
        }
        Ok(png)
    }
}

fn paint(colour: Colour) -> Paint<'static> {
    let [r, g, b] = colour;
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, 255);
    paint
}

/// Carries outlines of glyphs, whose y goes upwards, to a path.
struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    em: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.em, self.y - y * self.em)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
