//! What rules, gates of the verdict and the readiness board read from the analysis alike. A signal knows none of them.

pub mod beside;
pub mod ceilings;
pub mod change;
pub mod composite;
pub mod demand;
pub mod excess;
pub mod fallback;
pub mod fine_op;
pub mod first_use;
pub mod graph_sizes;
pub mod host_op;
pub mod late;
pub mod launch_shape;
pub mod link;
pub mod machine;
pub mod measured;
pub mod owned;
pub mod pauses;
pub mod product;
pub mod reading;
pub mod slow_steps;
pub mod speculation;
pub mod stages;
pub mod start_up;
pub mod transfers;
pub mod unfused;
