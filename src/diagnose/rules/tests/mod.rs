//! Every rule against a run that shows its fault and against one that only just does not.

mod communication;
mod measurement;
mod operator;
mod ranks;
mod operator_launch;
mod runtime;
mod whole;
