//! Stratoscope separates each decode step of an LLM into operator, runtime and communication time.

pub mod analysis;
pub mod diagnose;
pub mod i18n;
pub mod platform;
