//! What is said of captures in a few words instead of a file: `model.name=Llama-3.1-8B` of both, `a.caps.batch=8` of one side, and fields
//! whose value is the same on both whatever it is.

use model::{
    Trace,
    manifest::{self, Field, Provenance},
};

use super::Declaration;
use crate::Error;
use diagnosis::compare::contract::rule::{Status, status};

/// Value of a field that is said to be the same on both sides, where neither knows it.
pub const SAME: &str = "the same on both sides";

impl Declaration {
    /// Adds what is said as `key=value` of both sides, or as `a.key=value` or `b.key=value` of one.
    ///
    /// # Errors
    /// A key that is no field, an empty value, or a field of which another value is said already.
    pub fn add(&mut self, said: &str) -> Result<(), Error> {
        let (key, value) = said
            .split_once('=')
            .ok_or_else(|| Error::Request(format!("'{said}' is neither a file nor 'field=value'; name one of them")))?;
        let (key, value) = (key.trim(), value.trim());
        let (sides, key): (&[usize], &str) = match key.split_once('.') {
            Some(("a", key)) => (&[0], key),
            Some(("b", key)) => (&[1], key),
            _ => (&[0, 1], key),
        };
        let field = declarable(key)?;
        if value.is_empty() {
            return Err(Error::Request(format!("'{key}=' is empty; say what it was, or leave it out")));
        }
        for side in sides {
            let Some(side) = self.sides.get_mut(*side) else { continue };
            if let Some((_, other)) = side.iter().find(|(known, other)| known.key == field.key && other != value) {
                return Err(Error::Request(format!(
                    "{key} is said twice of one side, as '{other}' and as '{value}'; leave one of them"
                )));
            }
            side.retain(|(known, _)| known.key != field.key);
            side.push((field, value.to_owned()));
        }
        Ok(())
    }

    /// Says of a field that its value is the same on both sides.
    ///
    /// # Errors
    /// A key that is no field.
    pub fn same(&mut self, key: &str) -> Result<(), Error> {
        let field = declarable(key.trim())?;
        if self.same.iter().all(|known| known.key != field.key) {
            self.same.push(field);
        }
        Ok(())
    }

    /// Carries over to the side that does not know it what is said to be the same on both.
    ///
    /// # Errors
    /// Two captures that show different values.
    pub fn agree<'a>(&self, traces: impl IntoIterator<Item = &'a mut Trace>) -> Result<(), Error> {
        let mut traces: Vec<&mut Trace> = traces.into_iter().collect();
        for field in &self.same {
            let known = traces
                .iter()
                .filter_map(|trace| Some((trace.source.clone(), trace.manifest.value(field.key)?.to_owned())));
            let known: Vec<_> = known.collect();
            if let Some((source, value)) = known.first() {
                let denied =
                    known.iter().find(|(_, other)| status(field, Some(value), Some(other)) == Status::Different);
                if let Some((other, differs)) = denied {
                    return Err(Error::Request(format!(
                        "--same {}: '{source}' shows '{value}', but '{other}' shows '{differs}'; leave it out, or ask with --study {}",
                        field.key, field.key
                    )));
                }
            }
            let value = known.into_iter().next().map_or_else(|| SAME.to_owned(), |(_, value)| value);
            for trace in traces.iter_mut().filter(|trace| trace.manifest.value(field.key).is_none()) {
                trace.manifest.set(field.key, value.clone(), Provenance::Declared);
            }
        }
        Ok(())
    }
}

fn declarable(key: &str) -> Result<&'static Field, Error> {
    manifest::declarable(key).ok_or_else(|| {
        Error::Request(format!("'{key}' is no field of the manifest; 'strato manifest show CAPTURE' lists them"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use model::{TraceBuilder, TraceSink};

    use super::*;

    fn capture(facts: &[(&'static str, &str)]) -> Trace {
        let mut builder = TraceBuilder::new("run.json", "kineto");
        facts.iter().for_each(|(key, value)| builder.manifest(key, value, Provenance::Observed));
        builder.finish()
    }

    #[test]
    fn a_few_words_say_what_a_file_says() {
        let mut declared = Declaration::default();
        declared.add("model.name = m").unwrap();
        declared.add("b.caps.batch=8").unwrap();
        assert_eq!(declared.of(0), [("model.name", "m")]);
        assert_eq!(declared.of(1), [("model.name", "m"), ("caps.batch", "8")]);
        let wrong = [
            ("model.nam=x", "'model.nam' is no field"),
            ("model.name=", "'model.name=' is empty"),
            ("pair.tom", "'pair.tom' is neither a file nor 'field=value'"),
            ("a.model.name=n", "model.name is said twice of one side, as 'm' and as 'n'"),
        ];
        for (said, expected) in wrong {
            let refused = declared.add(said).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn what_is_the_same_is_carried_over_and_what_differs_is_refused() {
        let mut declared = Declaration::default();
        declared.same("model.name").unwrap();
        let value = |trace: &Trace| trace.manifest.value("model.name").unwrap().to_owned();
        let (mut a, mut b) = (capture(&[("model.name", "m")]), capture(&[]));
        declared.agree([&mut a, &mut b]).unwrap();
        assert_eq!((value(&a), value(&b)), ("m".into(), "m".into()));
        let (mut a, mut b) = (capture(&[]), capture(&[]));
        declared.agree([&mut a, &mut b]).unwrap();
        assert_eq!((value(&a), value(&b)), (SAME.into(), SAME.into()));
        let (mut a, mut b) = (capture(&[("model.name", "m")]), capture(&[("model.name", "n")]));
        let refused = declared.agree([&mut a, &mut b]).unwrap_err().to_string();
        assert!(refused.contains("shows 'm'") && refused.contains("shows 'n'"), "{refused}");
        assert!(declared.same("model.nam").is_err());
    }
}
