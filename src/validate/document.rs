//! Parses YAML and JSON text into documents whose values know their positions.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Error, Location, Spanned};

/// Line and column, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

/// The text is not YAML. The message quotes nothing, because the text may be that of a Secret.
#[derive(Debug)]
pub(super) struct InvalidYaml {
    pub position: Position,
    pub message: String,
}

/// A value and its position.
#[derive(Clone, Debug)]
pub(super) struct Node {
    position: Position,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Scalar(Value),
    Sequence(Vec<Node>),
    Mapping(Vec<(NodeKey, Node)>),
}

#[derive(Clone, Debug)]
struct NodeKey {
    name: String,
    position: Position,
}

/// A document of a stream: its text, and the number of lines before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    pub text: &'a str,
    pub lines_before: u64,
}

/// Splits a stream at its `---` lines, so that an error in one document does not hide others. (YAML
/// allows no such line inside a document, not even in quotes or in a block of text.)
pub(super) fn chunks(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut begin, mut begin_line, mut offset) = (0, 0, 0);
    let mut is_preamble = true;
    for (number, line) in (0..).zip(text.split_inclusive('\n')) {
        let is_marker = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if is_marker && !is_preamble {
            chunks.push(Chunk {
                text: &text[begin..offset],
                lines_before: begin_line,
            });
            (begin, begin_line) = (offset, number);
        }
        // Comments and directives belong to the document after them.
        is_preamble =
            !is_marker && is_preamble && (line.trim().is_empty() || line.starts_with(['#', '%']));
        offset += line.len();
    }
    chunks.push(Chunk {
        text: &text[begin..],
        lines_before: begin_line,
    });
    chunks
}

impl Chunk<'_> {
    /// The documents of the chunk: usually one, none if it contains only comments.
    pub fn parse(&self) -> Result<Vec<Node>, InvalidYaml> {
        // As kubectl reads it: YAML 1.1 for booleans, merges and octal numbers, and no duplicate
        // fields.
        let options = serde_saphyr::options! { legacy_octal_numbers: true, with_snippet: false };
        let parsed =
            serde_saphyr::from_multiple_with_options::<Spanned<Content>>(self.text, options);
        let mut nodes: Vec<Node> = parsed
            .map_err(|error| self.unreadable(&error))?
            .into_iter()
            .map(Node::from)
            .collect();
        nodes
            .iter_mut()
            .for_each(|node| node.shift(self.lines_before));
        Ok(nodes)
    }

    fn unreadable(&self, error: &Error) -> InvalidYaml {
        let at = error
            .location()
            .map_or(Position { line: 1, column: 1 }, Position::from);
        let position = Position {
            line: at.line.max(1) + self.lines_before,
            column: at.column.max(1),
        };
        // Use only texts that quote nothing.
        let message = match error.without_snippet() {
            Error::DuplicateMappingKey { .. } => {
                "this key is already set in the same mapping".to_owned()
            }
            Error::UnknownAnchor { .. } => "unknown anchor".to_owned(),
            Error::ExternalMessage { msg, .. } => msg.clone(),
            Error::Eof { .. } => "unexpected end".to_owned(),
            Error::NonFiniteFloat { .. } => "numbers must be finite".to_owned(),
            Error::Budget { .. } => "the document is too large or nested too deeply".to_owned(),
            _ => "the document has a form that no manifest has".to_owned(),
        };
        InvalidYaml { position, message }
    }
}

impl Node {
    pub fn position(&self) -> Position {
        self.position
    }

    /// The value without positions.
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::Sequence(items) => items.iter().map(Node::value).collect(),
            Content::Mapping(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, node)| (key.name.clone(), node.value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|(_, node)| node)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.content {
            Content::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    pub fn items(&self) -> Option<&[Node]> {
        match &self.content {
            Content::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The position of the value at `path` (such as `spec.names[0]`). For a value of several lines
    /// it is that of the key, and for a missing one that of the nearest parent.
    pub fn locate(&self, path: &str) -> Position {
        self.walk(path, self.position, &|_, node| node)
    }

    /// The position of the last key in `path`.
    pub fn locate_key(&self, path: &str) -> Position {
        self.walk(path, self.position, &|key, _| key)
    }

    /// `key` is the position of this node's key or list item.
    fn walk(
        &self,
        path: &str,
        key: Position,
        end: &dyn Fn(Position, Position) -> Position,
    ) -> Position {
        let path = path.strip_prefix('.').unwrap_or(path);
        match &self.content {
            Content::Mapping(entries) => {
                // Choose the longest key, because names of settings and of labels contain dots.
                let inner = entries
                    .iter()
                    .filter_map(|(key, node)| {
                        rest_after(path, &key.name).map(|rest| (key, node, rest))
                    })
                    .max_by_key(|(key, _, _)| key.name.len());
                inner.map_or(key, |(key, node, rest)| node.walk(rest, key.position, end))
            }
            Content::Sequence(items) => {
                let indexed = path.strip_prefix('[').and_then(|path| path.split_once(']'));
                let item = indexed.and_then(|(index, rest)| {
                    Some((items.get(index.parse::<usize>().ok()?)?, rest))
                });
                item.map_or(key, |(item, rest)| item.walk(rest, item.position, end))
            }
            // An empty value has no position of its own.
            Content::Scalar(Value::Null) => key,
            Content::Scalar(_) if path.is_empty() => end(key, self.position),
            Content::Scalar(_) => key,
        }
    }

    fn entry(&self, name: &str) -> Option<&(NodeKey, Node)> {
        match &self.content {
            Content::Mapping(entries) => entries.iter().find(|(key, _)| key.name == name),
            _ => None,
        }
    }

    fn shift(&mut self, lines: u64) {
        self.position.line += lines;
        match &mut self.content {
            Content::Scalar(_) => {}
            Content::Sequence(items) => items.iter_mut().for_each(|item| item.shift(lines)),
            Content::Mapping(entries) => {
                for (key, node) in entries {
                    key.position.line += lines;
                    node.shift(lines);
                }
            }
        }
    }
}

/// The rest of `path` after `name`, if it begins with that whole name.
fn rest_after<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    (!name.is_empty() && (rest.is_empty() || rest.starts_with(['.', '[']))).then_some(rest)
}

impl From<Location> for Position {
    fn from(at: Location) -> Self {
        Self {
            line: at.line(),
            column: at.column(),
        }
    }
}

impl From<Spanned<Content>> for Node {
    fn from(spanned: Spanned<Content>) -> Self {
        Self {
            position: spanned.referenced.into(),
            content: spanned.value,
        }
    }
}

impl Content {
    /// A whole number is an integer in any notation.
    fn float(value: f64) -> Self {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let whole = value.fract() == 0.0 && value.abs() <= EXACT;
        let number = if whole {
            Some(Number::from(value as i64))
        } else {
            Number::from_f64(value)
        };
        Content::Scalar(number.map_or(Value::Null, Value::Number))
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Content, E> {
        Ok(Content::float(value as f64))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Content, E> {
        Ok(Content::float(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element::<Spanned<Content>>()? {
            items.push(item.into());
        }
        Ok(Content::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, node)) = mapping.next_entry::<Spanned<String>, Spanned<Content>>()? {
            entries.push((
                NodeKey {
                    name: key.value,
                    position: key.referenced.into(),
                },
                node.into(),
            ));
        }
        Ok(Content::Mapping(entries))
    }
}

#[cfg(test)]
mod tests;
