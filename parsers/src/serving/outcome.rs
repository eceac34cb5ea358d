//! The members of a result that are kept, read so that a broken value costs itself and a cut costs what follows it.

use model::{Ns, time::parse_decimal};

use crate::json::{Cursor, Fault, Text, Value, member};

/// Facts kept of one result.
const FACTS: usize = 96;
/// Objects kept of one result.
const OBJECTS: usize = 64;

/// What a result says.
#[derive(Default)]
pub struct Outcome<'a> {
    /// Numbers and texts by their key.
    pub facts: Vec<(String, std::borrow::Cow<'a, str>)>,
    /// Objects by their key, with their brackets.
    pub objects: Vec<(String, &'a [u8])>,
    /// Times of whole generations, ns; absent where unreadable.
    pub latencies: Vec<Option<Ns>>,
    /// Time to the first token of each request, ns.
    pub ttfts: Vec<Option<Ns>>,
    /// Times between the tokens of each request, ns.
    pub itls: Vec<Vec<Option<Ns>>>,
    /// Requests that ended with an error.
    pub failed: u64,
    /// Values `Infinity` and `NaN`.
    pub infinite: u64,
    /// Times that are no number of seconds.
    pub unreadable: u64,
    /// Values that are no JSON.
    pub broken: u64,
}

impl<'a> Outcome<'a> {
    /// Reads the object at the cursor as far as it goes.
    pub fn read(json: &mut Cursor<'a>) -> (Self, Result<(), Fault>) {
        let mut outcome = Self::default();
        let end = outcome.members(json);
        (outcome, end)
    }

    /// Whether nothing at all was read.
    pub fn is_empty(&self) -> bool {
        // Times of some tools are objects with a unit.
        let timed = self.objects.iter().any(|(_, raw)| member::has_key(raw, "unit"));
        self.facts.is_empty() && !timed && self.latencies.is_empty() && self.ttfts.is_empty() && self.itls.is_empty()
    }

    fn members(&mut self, json: &mut Cursor<'a>) -> Result<(), Fault> {
        if json.peek()? != b'{' {
            return Err(Fault::Broken);
        }
        json.at += 1;
        while json.separators()? != b'}' {
            match json.key().and_then(|key| self.member(key, json)) {
                Err(Fault::Broken) => {
                    self.broken += 1;
                    json.skip_broken()?;
                }
                other => other?,
            }
        }
        json.at += 1;
        Ok(())
    }

    fn member(&mut self, key: Text<'a>, json: &mut Cursor<'a>) -> Result<(), Fault> {
        match key.raw {
            b"latencies" => self.list(json, &mut |own, json| own.time(json).map(|time| own.latencies.push(time))),
            b"ttfts" => self.list(json, &mut |own, json| own.time(json).map(|time| own.ttfts.push(time))),
            b"itls" => self.list(json, &mut |own, json| {
                own.itls.push(Vec::new());
                own.list(json, &mut |own, json| {
                    let time = own.time(json)?;
                    own.itls.last_mut().into_iter().for_each(|last| last.push(time));
                    Ok(())
                })
            }),
            b"errors" => self.list(json, &mut |own, json| {
                own.failed += u64::from(!json.value()?.is_absent());
                Ok(())
            }),
            _ => {
                let value = json.value()?;
                self.fact(key, value);
                Ok(())
            }
        }
    }

    fn fact(&mut self, key: Text<'a>, value: Value<'a>) {
        self.infinite += u64::from(is_infinite(value));
        let text = match value {
            Value::Text(text) => text.decode().0,
            Value::Scalar(raw) => String::from_utf8_lossy(raw),
            Value::Container(raw) => {
                if raw.starts_with(b"{") && self.objects.len() < OBJECTS {
                    self.objects.push((key.decode().0.into_owned(), raw));
                }
                return;
            }
        };
        if !value.is_absent() && self.facts.len() < FACTS {
            self.facts.push((key.decode().0.into_owned(), text));
        }
    }

    /// Reads a list, each element by `element`; a broken one is passed over. What is no list is, too.
    fn list(
        &mut self,
        json: &mut Cursor<'a>,
        element: &mut dyn FnMut(&mut Self, &mut Cursor<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if json.peek()? != b'[' {
            return json.value().map(drop);
        }
        json.at += 1;
        while json.separators()? != b']' {
            match element(self, json) {
                Err(Fault::Broken) => {
                    self.broken += 1;
                    json.skip_broken()?;
                }
                other => other?,
            }
        }
        json.at += 1;
        Ok(())
    }

    /// Seconds of a number, in ns.
    fn time(&mut self, json: &mut Cursor<'a>) -> Result<Option<Ns>, Fault> {
        let value = json.value()?;
        self.infinite += u64::from(is_infinite(value));
        let seconds = if let Value::Scalar(raw) = value { parse_decimal(raw, 9).ok() } else { None };
        let ns = seconds.map(|(ns, _)| ns).filter(|ns| *ns >= 0);
        self.unreadable += u64::from(ns.is_none());
        Ok(ns)
    }
}

fn is_infinite(value: Value<'_>) -> bool {
    let words: [&[u8]; 4] = [b"Infinity", b"-Infinity", b"NaN", b"nan"];
    matches!(value, Value::Scalar(raw) if words.contains(&raw))
}
