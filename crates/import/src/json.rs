//! JSON as it stands in a text: repeated names are kept, and where an object ends is found.

use crate::line::Line;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value, with an object's members in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Nothing,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// An object's member; the last of several of the same name, as most readers take it.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => {
                members.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Json::Number(value) => Some(*value),
            _ => None,
        }
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_number()
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Names that stand several times in one object, and how often, anywhere below.
    pub fn repeated(&self, found: &mut Vec<(String, u64)>) {
        match self {
            Json::Object(members) => {
                let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                for same in names.chunk_by(|a, b| a == b).filter(|same| same.len() > 1) {
                    found.push((same[0].to_owned(), same.len() as u64));
                }
                members.iter().for_each(|(_, value)| value.repeated(found));
            }
            Json::List(values) => values.iter().for_each(|value| value.repeated(found)),
            _ => {}
        }
    }
}

/// The object that begins on the first of these lines, and how many lines it takes. Commas before a closing
/// bracket, which some versions of sysstat print, are left out.
pub(crate) fn object(lines: &[Line<'_>]) -> Option<(Json, usize)> {
    let mut depth = 0i64;
    let (mut is_text, mut is_escaped) = (false, false);
    let mut text = String::new();
    for (place, line) in lines.iter().enumerate() {
        for character in line.text.chars() {
            text.push(character);
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' if is_text => is_escaped = true,
                '"' => is_text = !is_text,
                '{' | '[' if !is_text => depth += 1,
                '}' | ']' if !is_text => {
                    text.pop();
                    if text.trim_end().ends_with(',') {
                        text.truncate(text.trim_end().len() - 1);
                    }
                    text.push(character);
                    depth -= 1;
                    if depth == 0 {
                        return Some((serde_json::from_str(&text).ok()?, place + 1));
                    }
                }
                _ => {}
            }
        }
        text.push('\n');
    }
    None
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Nothing)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = values.next_element()? {
            all.push(value);
        }
        Ok(Json::List(all))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut all = Vec::new();
        while let Some(member) = members.next_entry()? {
            all.push(member);
        }
        Ok(Json::Object(all))
    }
}
