//! What the interfaces of CUPTI and of MSPTI have in common: a library that is opened function by function, and asks for buffers
//! and hands them back full of records.
//!
//! | module | owns |
//! | --- | --- |
//! | [`library`] | its functions and texts |
//! | [`buffers`] | memory that is lent to it |
//! | [`found`] | what was found in there |
//! | [`fields`] | numbers in records |
//! | [`clock`] | its stamps by the run's clock |

#![allow(unsafe_code)]

pub(crate) mod buffers;
pub(crate) mod clock;
pub(crate) mod fields;
pub(crate) mod found;
pub(crate) mod library;
