//! Rows of a capture that copies of it share: whoever draws them holds them while somebody else works on the capture.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// Rows in memory. A clone costs nothing and is the same rows; the first one to write into them, if another one is still
/// there, gets rows of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Shared<T>(Arc<Vec<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> Deref for Shared<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(rows: Vec<T>) -> Self {
        Self(Arc::new(rows))
    }
}

impl<T> FromIterator<T> for Shared<T> {
    fn from_iter<I: IntoIterator<Item = T>>(rows: I) -> Self {
        rows.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T: Clone> IntoIterator for Shared<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Shared<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T: Clone> IntoIterator for &'a mut Shared<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_is_the_same_rows_until_one_is_written() {
        let mut rows: Shared<u32> = (0..4).collect();
        let seen = rows.clone();
        assert!(std::ptr::eq(rows.as_slice(), seen.as_slice()));
        rows.push(4);
        assert_eq!((rows.len(), seen.len()), (5, 4));
        let own = rows.as_ptr();
        drop(seen);
        rows[0] = 7;
        assert!(std::ptr::eq(rows.as_ptr(), own), "rows of nobody else are written where they are");
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), [7, 1, 2, 3, 4]);
    }
}
