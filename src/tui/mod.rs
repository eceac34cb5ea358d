//! The terminal interface on captures that were opened.
pub mod action;
pub mod key;
pub mod keymap;
pub mod lane;
