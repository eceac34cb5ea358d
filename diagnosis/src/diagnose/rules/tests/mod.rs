//! Every rule against a run that shows its fault and against one that only just does not.

mod ceilings;
mod claims;
mod communication;
mod copies;
mod costs;
mod doubts;
mod first_screen;
mod graphs;
mod host;
mod invariants;
mod limits;
mod logged;
mod measured;
mod measurement;
mod operator;
mod operator_launch;
mod products;
mod ranks;
mod runtime;
mod scheduler;
mod start_up;
mod unmarked;
mod whole;
mod workload;
