//! The notation of DiskSim's parameter files: blocks of `name = value`, lists, comments.

use crate::drive_files::DriveFileError;

/// A value and the line it stands on.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number or a word.
    Word(String),
    /// `[ … ]`.
    List(Vec<(Value, usize)>),
    /// `type { … }`.
    Block(Block),
    /// `source file`.
    Source(String),
}

/// `type name { parameter = value, … }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its type.
    pub kind: String,
    /// Its name, if it has one.
    pub name: String,
    /// The line it begins on.
    pub line: usize,
    /// Parameters, their values and lines.
    pub parameters: Vec<(String, Value, usize)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

struct Parser<'a> {
    file: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    last_line: usize,
}

/// What stands at the top of a file: its blocks, and the files it takes in.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Blocks.
    pub blocks: Vec<Block>,
    /// Names after `source`.
    pub sources: Vec<String>,
}

/// Reads a parameter file.
pub fn parse(file: &str, text: &str) -> Result<Parsed, DriveFileError> {
    let tokens = tokens(text);
    let last_line = text.lines().count();
    let mut parser = Parser { file, tokens, at: 0, last_line };
    let mut parsed = Parsed::default();
    while parser.peek().is_some() {
        parser.top(&mut parsed)?;
    }
    Ok(parsed)
}

fn is_mark(c: char) -> bool {
    matches!(c, '{' | '}' | '[' | ']' | '=' | ',')
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let end = match is_mark(first) {
                true => first.len_utf8(),
                false => rest.find(|c: char| is_mark(c) || c.is_whitespace()).unwrap_or(rest.len()),
            };
            tokens.push(Token { text: &rest[..end], line: number + 1 });
            rest = rest[end..].trim_start();
        }
    }
    tokens
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).map(|token| token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(self.last_line, |token| token.line)
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn wrong(&self, line: usize, what: impl Into<String>) -> DriveFileError {
        DriveFileError::new(self.file, line, what)
    }

    fn cut_short(&self, what: &str, since: usize) -> DriveFileError {
        self.wrong(
            self.last_line,
            format!("the file ends inside {what} that began on line {since}: is it cut short?"),
        )
    }

    fn top(&mut self, parsed: &mut Parsed) -> Result<(), DriveFileError> {
        let line = self.line();
        let Some(word) = self.next() else { return Ok(()) };
        match word {
            "source" => match self.next() {
                Some(name) => parsed.sources.push(name.to_owned()),
                None => return Err(self.cut_short("a 'source'", line)),
            },
            // How DiskSim's components are wired together: not the drive's matter.
            "instantiate" | "topology" => self.skip_wiring(line)?,
            kind => {
                let name = match self.peek() {
                    Some("{") => "",
                    _ => self.next().unwrap_or_default(),
                };
                match self.next() {
                    Some("{") => {
                        let block = self.block(kind, name, line)?;
                        parsed.blocks.push(block);
                    }
                    _ => {
                        let what = format!(
                            "expected a block such as 'disksim_disk NAME {{', found '{kind} {name}'"
                        );
                        return Err(self.wrong(line, what));
                    }
                }
            }
        }
        Ok(())
    }

    fn skip_wiring(&mut self, line: usize) -> Result<(), DriveFileError> {
        let mut depth = 0i32;
        loop {
            match self.next() {
                Some("[") => depth += 1,
                Some("]") => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                Some(_) => (),
                None => return Err(self.cut_short("the wiring", line)),
            }
        }
        if self.peek() == Some("as") {
            self.at += 2;
        }
        Ok(())
    }

    fn block(&mut self, kind: &str, name: &str, line: usize) -> Result<Block, DriveFileError> {
        let mut block =
            Block { kind: kind.to_owned(), name: name.to_owned(), line, parameters: Vec::new() };
        loop {
            match self.peek() {
                None => return Err(self.cut_short(&format!("the block '{kind}'"), line)),
                Some("}") => {
                    self.at += 1;
                    return Ok(block);
                }
                Some(",") => self.at += 1,
                Some(_) => {
                    let parameter = self.parameter(kind, line)?;
                    block.parameters.push(parameter);
                }
            }
        }
    }

    fn parameter(
        &mut self,
        kind: &str,
        since: usize,
    ) -> Result<(String, Value, usize), DriveFileError> {
        let line = self.line();
        let mut name = String::new();
        loop {
            match self.next() {
                Some("=") => break,
                Some(mark @ ("{" | "}" | "[" | "]" | ",")) => {
                    let what = format!("expected '=' after '{name}', found '{mark}'");
                    return Err(self.wrong(line, what));
                }
                Some(word) => {
                    if !name.is_empty() {
                        name.push(' ');
                    }
                    name.push_str(word);
                }
                None => return Err(self.cut_short(&format!("the block '{kind}'"), since)),
            }
        }
        let line = self.line();
        let value = self.value(&name)?;
        Ok((name, value, line))
    }

    fn value(&mut self, name: &str) -> Result<Value, DriveFileError> {
        let line = self.line();
        match self.next() {
            None => Err(self.cut_short(&format!("the value of '{name}'"), line)),
            Some("[") => self.list(name, line),
            Some("source") => match self.next() {
                Some(file) => Ok(Value::Source(file.to_owned())),
                None => Err(self.cut_short(&format!("the value of '{name}'"), line)),
            },
            Some(mark @ ("{" | "}" | "]" | "=" | ",")) => {
                Err(self.wrong(line, format!("expected a value for '{name}', found '{mark}'")))
            }
            Some(word) => {
                if self.peek() == Some("{") {
                    self.at += 1;
                    return self.block(word, "", line).map(Value::Block);
                }
                let mut text = word.to_owned();
                // A word of several, such as a file's name with a blank, ends where a mark stands.
                while let Some(more) = self.peek().filter(|w| !w.starts_with(is_mark)) {
                    if self.line() != line {
                        break;
                    }
                    text.push(' ');
                    text.push_str(more);
                    self.at += 1;
                }
                Ok(Value::Word(text))
            }
        }
    }

    fn list(&mut self, name: &str, since: usize) -> Result<Value, DriveFileError> {
        let mut items = Vec::new();
        loop {
            match self.peek() {
                None => return Err(self.cut_short(&format!("the list '{name}'"), since)),
                Some("]") => {
                    self.at += 1;
                    return Ok(Value::List(items));
                }
                Some(",") => self.at += 1,
                Some(_) => {
                    let line = self.line();
                    items.push((self.value(name)?, line));
                }
            }
        }
    }
}

impl Block {
    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<(&Value, usize)> {
        self.parameters.iter().find(|(n, ..)| n == name).map(|(_, value, line)| (value, *line))
    }
}
