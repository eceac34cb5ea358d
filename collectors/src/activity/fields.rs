//! Numbers in records, by where they lie.

use std::marker::PhantomData;

/// A number that stands in records.
pub trait Word: Copy {
    /// Its size, bytes.
    const BYTES: usize;
    /// The number of these bytes in the machine's order.
    fn of(bytes: &[u8]) -> Option<Self>;
}

macro_rules! words {
    ($($word:ty),*) => {
        $(impl Word for $word {
            const BYTES: usize = size_of::<$word>();
            fn of(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_ne_bytes(bytes.try_into().ok()?))
            }
        })*
    };
}
words!(u8, u16, u32, u64);

/// A field: where it lies and how wide it is.
#[derive(Clone, Copy, Debug)]
pub struct Field<T>(usize, PhantomData<T>);

impl<T: Word> Field<T> {
    /// A field that lies there.
    pub(crate) const fn at(offset: usize) -> Self {
        Self(offset, PhantomData)
    }

    /// Its value in a record; `None` where the record ends before it.
    pub fn of(self, record: &[u8]) -> Option<T> {
        T::of(record.get(self.0..self.0 + T::BYTES)?)
    }
}

/// A field of a record, as the headers call it: name, offset, bytes.
pub type Named = (&'static str, usize, usize);

macro_rules! records {
    ($($(#[$doc:meta])* $module:ident { $($name:ident: $word:ty = $at:literal, $c:literal;)* })*) => {
        $($(#[$doc])* pub mod $module {
            use super::{Field, Named, Word};
            $(#[doc = $c] pub const $name: Field<$word> = Field::at($at);)*
            /// Every field with its name in the headers.
            pub const FIELDS: &[Named] = &[$(($c, $at, <$word as Word>::BYTES)),*];
        })*
    };
}

pub(crate) use records;
