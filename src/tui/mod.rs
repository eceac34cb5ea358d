//! The terminal interface on captures: what `strato view` shows. It reads the same report as `strato diagnose` prints, and the
//! analysis where a report has no room; it reads no file and no database.
//!
//! | module | owns |
//! | --- | --- |
//! | [`action`] | everything that a person can do, once |
//! | [`key`], [`keymap`] | keys and what they do |
//! | [`opened`] | the captures that are looked at |
//! | [`lane`] | lanes of the timeline, indexed for any zoom |
//! | [`view`] | one file per view |
//! | [`popup`] | help, palette and search, made from the actions |
//! | [`widget`] | parts of several views |
//! | [`text`], [`glyph`], [`theme`] | what a cell may hold and how it looks |
//! | [`app`] | the interface without a terminal |
//! | `backend`, [`terminal`], [`clipboard`] | the terminal, written to, taken and given back |
//! | [`run`](mod@run) | from events to frames |

pub mod action;
pub mod app;
mod backend;
pub mod clipboard;
pub mod glyph;
pub mod key;
pub mod keymap;
pub mod lane;
pub mod opened;
pub mod popup;
pub mod run;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod view;
pub mod widget;

pub use app::{App, Settings};
pub use keymap::Keymap;
pub use opened::Opened;
pub use run::run;
