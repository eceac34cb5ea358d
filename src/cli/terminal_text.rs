//! Text from inputs on its way to a terminal: what a terminal would act on is written out. How, reports and commands
//! have in common.

pub use report::text::line as plain;
