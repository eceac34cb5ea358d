//! Every rule against a run that shows its fault and against one that only just does not.

mod communication;
mod graphs;
mod host;
mod measurement;
mod operator;
mod ranks;
mod operator_launch;
mod runtime;
mod scheduler;
mod whole;
