//! Stratoscope separates each decode step of an LLM into operator, runtime and communication time.

pub mod analysis;
pub mod platform;
