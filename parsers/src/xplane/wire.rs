//! The fields of a message of protocol buffers, as far as they can be read: a file that was cut in the middle of a message still
//! gives the fields before the cut, and of a field that the cut hit what is there.

use quick_protobuf::BytesReader;

/// A kind of value that no field has.
const NO_FIELD: u64 = 8;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A number of variable length.
    Int(u64),
    /// Eight bytes, or four of them.
    Fixed(u64),
    /// A text or a message.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// A number, with the sign that it was written with.
    pub fn int(self) -> Option<i64> {
        if let Self::Int(value) = self { Some(value.cast_signed()) } else { None }
    }

    /// The bytes of a text or message.
    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// A text; one that is not UTF-8 is none.
    pub fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

/// The fields of one message.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    /// Whether the message ended where a field had not.
    pub broken: bool,
}

impl<'a> Fields<'a> {
    /// The fields of the message in these bytes.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, broken: false }
    }

    /// A number of variable length at the front.
    fn varint(&mut self) -> Option<u64> {
        let mut reader = BytesReader::from_bytes(self.rest);
        let value = reader.read_varint64(self.rest).ok();
        let read = self.rest.len().saturating_sub(reader.len());
        self.rest = value.and_then(|_| self.rest.get(read..)).unwrap_or_default();
        self.broken |= value.is_none();
        value
    }

    /// The next bytes, fewer where the message ends.
    fn part(&mut self, length: u64) -> &'a [u8] {
        let whole = usize::try_from(length).unwrap_or(usize::MAX);
        self.broken |= whole > self.rest.len();
        let (taken, rest) = self.rest.split_at(whole.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn fixed(&mut self, length: u64) -> u64 {
        let little_end_first = self.part(length).iter().rev();
        little_end_first.fold(0, |value, byte| (value << 8) | u64::from(*byte))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let key = self.varint()?;
        let value = match if key >> 3 == 0 { NO_FIELD } else { key & 7 } {
            0 => Value::Int(self.varint()?),
            1 => Value::Fixed(self.fixed(8)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.part(length))
            }
            5 => Value::Fixed(self.fixed(4)),
            // No field has the number 0: what follows is no message, such as the zeros of a file that was made longer.
            _ => {
                (self.rest, self.broken) = (&[], true);
                return None;
            }
        };
        Some((key >> 3, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_up_to_a_cut_and_through_it() {
        let message = [0x08, 0x96, 0x01, 0x12, 0x03, b'a', b'b', b'c', 0x19, 1, 0, 0, 0, 0, 0, 0, 0];
        let all: Vec<_> = Fields::of(&message).collect();
        assert_eq!(all, [(1, Value::Int(150)), (2, Value::Bytes(b"abc")), (3, Value::Fixed(1))]);
        let mut cut = Fields::of(message.get(..7).unwrap_or_default());
        assert_eq!((cut.next(), cut.next()), (Some((1, Value::Int(150))), Some((2, Value::Bytes(b"ab")))));
        assert!(cut.broken && cut.next().is_none());
    }

    #[test]
    fn what_is_no_message_ends() {
        for bytes in [&[0xff; 40][..], &[0x0b, 1, 2], &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]]
        {
            let mut fields = Fields::of(bytes);
            let count = fields.by_ref().take(100).count();
            assert!(count < 2 && fields.broken, "{bytes:?}");
        }
    }
}
