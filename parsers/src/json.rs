//! A cursor over JSON text that forgives what profilers write: raw control characters and broken UTF-8 in strings,
//! `NaN` and `Infinity`, trailing or missing commas, numbers of any length. It builds nothing, never recurses and never
//! copies a value that nobody asked for, so that reading costs little more than finding where values end.

mod scan;

use std::borrow::Cow;

use self::scan::{CLASS, LETTER, OTHER, end_of_run};

pub(crate) mod boundary;
pub(crate) mod events;
pub(crate) mod member;

/// Deepest nesting of a value; deeper ones are taken for damage. The same limit as that of `serde_json`.
const MAX_NESTING: u32 = 128;

/// Why a value could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes end inside the value.
    End,
    /// The bytes are not JSON, even with forgiveness.
    Broken,
}

/// The inside of a string, still escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// The bytes between the quotes.
    pub raw: &'a [u8],
    /// Whether there is a backslash in them.
    pub escaped: bool,
}

impl<'a> Text<'a> {
    /// The text, with `true` when bytes or escapes had to be replaced.
    pub fn decode(self) -> (Cow<'a, str>, bool) {
        if self.escaped {
            let (bytes, damaged) = unescape(self.raw);
            return match String::from_utf8(bytes) {
                Ok(text) => (Cow::Owned(text), damaged),
                Err(e) => (Cow::Owned(String::from_utf8_lossy(e.as_bytes()).into_owned()), true),
            };
        }
        match std::str::from_utf8(self.raw) {
            Ok(text) => (Cow::Borrowed(text), false),
            Err(_) => (String::from_utf8_lossy(self.raw), true),
        }
    }
}

/// A value as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// A string.
    Text(Text<'a>),
    /// A number, `true`, `false`, `null`, `NaN` or an infinity.
    Scalar(&'a [u8]),
    /// An array or object with its brackets.
    Container(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes of a number, also of one that is written as a string.
    pub fn number(self) -> Option<&'a [u8]> {
        match self {
            Self::Text(text) => Some(text.raw),
            Self::Scalar(raw) => Some(raw),
            Self::Container(_) => None,
        }
    }

    /// The value as an integer: plain, as a string, in hexadecimal, or with a fraction of zero.
    pub fn int(self) -> Option<i64> {
        integer(self.number()?)
    }

    /// The value if it is a string.
    pub fn text(self) -> Option<Text<'a>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the source says that there is no value.
    pub fn is_absent(self) -> bool {
        matches!(self, Self::Scalar(b"null")) || matches!(self, Self::Text(Text { raw: [], .. }))
    }
}

/// An integer of up to 64 bits from its text.
pub(crate) fn integer(raw: &[u8]) -> Option<i64> {
    let (negative, digits) = match raw {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !digits.is_empty() && digits.len() <= 18 && digits.iter().all(u8::is_ascii_digit) {
        let value = digits.iter().fold(0i64, |value, b| value * 10 + i64::from(b - b'0'));
        return Some(if negative { -value } else { value });
    }
    if let Some(hex) = raw.strip_prefix(b"0x") {
        return i64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok();
    }
    match model::time::parse_decimal(raw, 0) {
        Ok((value, false)) => Some(value),
        _ => None,
    }
}

/// A place in JSON text.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Offset of the next byte.
    pub at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at `at`.
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The next byte that is not white space, which stays unread.
    pub fn peek(&mut self) -> Result<u8, Fault> {
        while let Some(&b) = self.bytes.get(self.at) {
            if !matches!(b, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(b);
            }
            self.at += 1;
        }
        Err(Fault::End)
    }

    /// The bytes from here to where `end` stands.
    pub fn until(&self, end: &Self) -> &'a [u8] {
        self.bytes.get(self.at..end.at).unwrap_or_default()
    }

    /// Skips white space and commas.
    pub fn separators(&mut self) -> Result<u8, Fault> {
        loop {
            match self.peek()? {
                b',' => self.at += 1,
                b => return Ok(b),
            }
        }
    }

    /// Whether the object here begins with the key that every event has and no metadata begins with.
    pub fn phase_comes_first(&self) -> Result<bool, Fault> {
        let mut inside = Self::new(self.bytes, self.at + 1);
        Ok(inside.peek()? == b'"' && inside.string()?.raw == b"ph")
    }

    /// Reads an object; `member` gets each key with the cursor on its value and must read it.
    pub fn object(&mut self, mut member: impl FnMut(Text<'a>, &mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.peek()? != b'{' {
            return Err(Fault::Broken);
        }
        self.at += 1;
        loop {
            match self.separators()? {
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                b'"' => {
                    let key = self.key()?;
                    member(key, self)?;
                }
                _ => return Err(Fault::Broken),
            }
        }
    }

    /// Reads an array; `element` gets the cursor on each element and must read it.
    pub fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.peek()? != b'[' {
            return Err(Fault::Broken);
        }
        self.at += 1;
        while self.separators()? != b']' {
            element(self)?;
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a key and its colon.
    pub fn key(&mut self) -> Result<Text<'a>, Fault> {
        let key = self.string()?;
        if self.peek()? != b':' {
            return Err(Fault::Broken);
        }
        self.at += 1;
        Ok(key)
    }

    /// Passes over what is broken here, up to the comma or bracket after it.
    pub fn skip_broken(&mut self) -> Result<(), Fault> {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        let len = rest.iter().position(|b| matches!(b, b',' | b']' | b'}')).ok_or(Fault::End)?;
        self.at += 1 + len;
        Ok(())
    }

    /// Reads any value.
    pub fn value(&mut self) -> Result<Value<'a>, Fault> {
        match self.peek()? {
            b'"' => self.string().map(Value::Text),
            b'{' | b'[' => {
                let start = self.at;
                self.container()?;
                Ok(Value::Container(self.bytes.get(start..self.at).unwrap_or_default()))
            }
            _ => self.scalar().map(Value::Scalar),
        }
    }

    fn string(&mut self) -> Result<Text<'a>, Fault> {
        let start = self.at + 1;
        let (mut at, mut escaped) = (start, false);
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let found = at + end_of_run(rest).ok_or(Fault::End)?;
            if self.bytes.get(found) == Some(&b'"') {
                self.at = found + 1;
                return Ok(Text { raw: self.bytes.get(start..found).unwrap_or_default(), escaped });
            }
            escaped = true;
            at = found + 2;
        }
    }

    fn scalar(&mut self) -> Result<&'a [u8], Fault> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut seen = 0;
        let outside = |b: &u8| {
            let class = CLASS[usize::from(*b)];
            seen |= class;
            class == OTHER
        };
        let len = rest.iter().position(outside).ok_or(Fault::End)?;
        let raw = rest.get(..len).unwrap_or_default();
        let known = match raw.first() {
            Some(b'0'..=b'9' | b'-' | b'+' | b'.') => {
                seen & LETTER == 0 || matches!(raw, b"-Infinity" | b"-inf" | b"-nan" | b"-NaN")
            }
            _ => matches!(raw, b"true" | b"false" | b"null" | b"NaN" | b"nan" | b"Infinity" | b"inf"),
        };
        if !known {
            return Err(Fault::Broken);
        }
        self.at += len;
        Ok(raw)
    }

    /// Skips an array or object. Brackets must match and what lies between must be made of values, which is enough to
    /// notice a lost quote within a few bytes.
    fn container(&mut self) -> Result<(), Fault> {
        let (mut depth, mut objects) = (0u32, 0u128);
        loop {
            match self.separators()? {
                open @ (b'{' | b'[') => {
                    if depth == MAX_NESTING {
                        return Err(Fault::Broken);
                    }
                    depth += 1;
                    objects = objects << 1 | u128::from(open == b'{');
                    self.at += 1;
                }
                close @ (b'}' | b']') => {
                    if (objects & 1 == 1) != (close == b'}') {
                        return Err(Fault::Broken);
                    }
                    depth -= 1;
                    objects >>= 1;
                    self.at += 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                b'"' => {
                    self.string()?;
                }
                b':' if objects & 1 == 1 => self.at += 1,
                _ => {
                    self.scalar()?;
                }
            }
        }
    }
}

/// Resolves escapes; the second value says whether one of them was not valid.
fn unescape(raw: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(raw.len());
    let (mut at, mut damaged) = (0, false);
    while let Some(&b) = raw.get(at) {
        if b != b'\\' {
            out.push(b);
            at += 1;
            continue;
        }
        let escape = raw.get(at + 1).copied().unwrap_or(b'\\');
        at += 2;
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'"' | b'\\' | b'/' => out.push(escape),
            b'u' => {
                let (c, used) = code_point(raw.get(at..).unwrap_or_default());
                at += used;
                damaged |= c.is_none();
                let mut utf8 = [0; 4];
                out.extend_from_slice(c.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut utf8).as_bytes());
            }
            // A Windows path or a demangled name whose backslash nobody escaped.
            other => {
                damaged = true;
                out.extend_from_slice(&[b'\\', other]);
            }
        }
    }
    (out, damaged)
}

/// The character of `XXXX` or `XXXX\uXXXX`, and how many bytes it takes.
fn code_point(rest: &[u8]) -> (Option<char>, usize) {
    let unit = |at: usize| {
        let digits = rest.get(at..at + 4)?;
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let Some(first) = unit(0) else { return (None, 0) };
    if (0xD800..0xDC00).contains(&first)
        && rest.get(4..6) == Some(b"\\u")
        && let Some(second @ 0xDC00..0xE000) = unit(6)
    {
        return (char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00)), 10);
    }
    (char::from_u32(first), 4)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn value(text: &str) -> Result<Value<'_>, Fault> {
        Cursor::new(text.as_bytes(), 0).value()
    }

    #[test]
    fn values_end_where_they_end() {
        assert_eq!(value(r#"{"a": [1, {"b": "}]"}], "c": NaN}, "#).unwrap(), {
            Value::Container(br#"{"a": [1, {"b": "}]"}], "c": NaN}"#)
        });
        assert_eq!(value("-Infinity}").unwrap(), Value::Scalar(b"-Infinity"));
        assert_eq!(value("12"), Err(Fault::End), "a number at the end may go on");
        assert_eq!(value("[1, 2"), Err(Fault::End));
        for broken in ["[1}", "{1]", "[abc]", "truth,", "]", "[1:2]"] {
            assert_eq!(value(broken), Err(Fault::Broken), "{broken}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |n: usize| format!("{}1{} ", "[".repeat(n), "]".repeat(n));
        assert!(value(&nested(128)).is_ok());
        assert_eq!(value(&nested(129)), Err(Fault::Broken));
        assert_eq!(value(&"[".repeat(1 << 20)), Err(Fault::Broken));
    }

    #[test]
    fn strings_are_decoded_and_damage_is_told() {
        let decode = |text: &str| {
            let Value::Text(t) = value(text).unwrap() else { panic!("not a string") };
            let (text, damaged) = t.decode();
            (text.into_owned(), damaged)
        };
        assert_eq!(decode(r#""a\n\"é\ud83d\ude00""#), ("a\n\"é😀".into(), false));
        assert_eq!(decode("\"raw\nnewline\""), ("raw\nnewline".into(), false));
        assert_eq!(decode(r#""\ud83d x""#), ("\u{fffd} x".into(), true));
        assert_eq!(decode(r#""C:\Users""#), ("C:\\Users".into(), true));
        let (text, damaged) = Text { raw: b"a\xffb", escaped: false }.decode();
        assert_eq!((&*text, damaged), ("a\u{fffd}b", true));
    }

    #[test]
    fn integers_in_every_spelling() {
        let spellings: [(&str, Option<i64>); 9] = [
            ("42,", Some(42)),
            ("\"-42\"", Some(-42)),
            ("\"0x1f\"", Some(31)),
            ("3.0,", Some(3)),
            ("9223372036854775807,", Some(i64::MAX)),
            ("9223372036854775808,", None),
            ("3.5,", None),
            ("null,", None),
            ("[1],", None),
        ];
        for (text, expected) in spellings {
            assert_eq!(value(text).unwrap().int(), expected, "{text}");
        }
    }
}
