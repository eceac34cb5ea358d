//! The terminal interface: captures as `strato view` shows them, and what runs as `strato run` and `strato top` do. It reads the
//! same report as `strato diagnose` prints, and the analysis where a report has no room; it reads no file and no database.
//!
//! | module | owns |
//! | --- | --- |
//! | [`action`] | everything that a person can do, once |
//! | [`key`], [`keymap`] | keys and what they do |
//! | [`opened`], [`sketch`] | the captures that are looked at, and before they are analysed |
//! | [`works`] | their device work, row by row |
//! | [`lane`] | lanes of the timeline, indexed for any zoom |
//! | [`view`] | one file per view |
//! | [`popup`] | help, palette and search, made from the actions |
//! | [`widget`] | parts of several views |
//! | [`text`], [`glyph`], [`theme`] | what a cell may hold and how it looks |
//! | [`face`] | what fills the screen, and what it can be asked |
//! | [`chrome`] | what surrounds it: keys, help, palette, messages |
//! | [`app`], [`captures`] | captures |
//! | [`live`] | what runs: a dashboard of plain values that a source gives |
//! | [`job`], [`opening`] | work in the background, and how far it is |
//! | [`export`] | what is seen, as files |
//! | `backend`, [`terminal`], [`clipboard`] | the terminal, written to, taken and given back |
//! | `events`, [`run`](mod@run) | what the terminal tells; from events to frames |

pub mod action;
pub mod app;
pub mod at;
mod backend;
pub mod captures;
pub mod chrome;
pub mod clipboard;
mod events;
pub mod export;
pub mod face;
pub mod glyph;
pub mod job;
pub mod key;
pub mod keymap;
pub mod lane;
pub mod live;
pub mod opened;
pub mod opening;
pub mod popup;
pub mod run;
pub mod sketch;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod view;
pub mod widget;
pub mod works;

pub use app::{App, Settings};
pub use face::Face;
pub use job::Job;
pub use keymap::Keymap;
pub use opened::Opened;
pub use opening::Opening;
pub use run::{Left, Session};
pub use sketch::Sketch;
