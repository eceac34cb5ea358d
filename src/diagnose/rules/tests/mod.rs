//! Every rule against a run that shows its fault and against one that only just does not.

mod claims;
mod communication;
mod measurement;
mod operator;
mod runtime;
mod whole;
