//! Members of JSON told by key *and* value, in the first bytes of a file that may be cut or damaged anywhere. A word alone
//! says nothing: it may be the name of an operator, a path, or part of what a user wrote.

use memchr::memmem;

/// The bytes of each value of a member with this key, from the value's first byte to the end of `bytes`, at any depth.
pub(crate) fn values<'b>(bytes: &'b [u8], key: &str) -> impl Iterator<Item = &'b [u8]> {
    let quoted = format!("\"{key}\"");
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let at = from + memmem::find(bytes.get(from..)?, quoted.as_bytes())?;
            from = at + quoted.len();
            // A quote behind a backslash stands inside a text.
            let inside = at.checked_sub(1).is_some_and(|before| bytes.get(before) == Some(&b'\\'));
            let value = bytes.get(from..)?.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
            if let Some(value) = value.filter(|_| !inside) {
                return Some(value);
            }
        }
    })
}

/// The texts that members with this key hold, still escaped; other values are left out.
pub(crate) fn texts<'b>(bytes: &'b [u8], key: &str) -> impl Iterator<Item = &'b [u8]> {
    values(bytes, key).filter_map(|value| {
        let text = value.strip_prefix(b"\"")?;
        text.get(..memchr::memchr(b'"', text)?)
    })
}

/// Whether a member with this key is there, whatever its value.
pub(crate) fn has_key(bytes: &[u8], key: &str) -> bool {
    values(bytes, key).next().is_some()
}

/// Whether a member with this key has a value that begins with one of these bytes: `[` for a list, `{` for an object.
pub(crate) fn has_value(bytes: &[u8], key: &str, first: &[u8]) -> bool {
    values(bytes, key).any(|value| value.first().is_some_and(|byte| first.contains(byte)))
}

/// The bytes with which a number begins.
pub(crate) const NUMBER: &[u8] = b"-0123456789";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_a_key_and_its_value() {
        let json = br#"{"name": "cat", "cat" : "Operator", "said": "\"cat\": \"no\"", "cat"
            :"a","cat":3, "list":[1], "cut": "#;
        assert_eq!(texts(json, "cat").collect::<Vec<_>>(), [b"Operator".as_slice(), b"a"]);
        assert_eq!(values(json, "cat").count(), 3);
        assert!(has_value(json, "cat", NUMBER) && has_value(json, "list", b"[") && !has_value(json, "list", b"{"));
        assert!(has_key(json, "cut") && !has_key(json, "Operator") && !has_key(json, "missing"));
        assert!(!has_value(json, "cut", b"[{"), "its value lies beyond the end");
        assert_eq!(texts(br#"{"cat": "cut"#, "cat").count(), 0);
    }
}
