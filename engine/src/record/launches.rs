//! Who is told which operator the host launches.

/// Whoever records the device from outside, such as a vendor's library: told what is launched, it knows whose the device's work
/// is. It is called on the thread of the launch and within the time of it, so that it must be short.
pub trait Launches: Send + Sync + std::fmt::Debug {
    /// The calling thread launches the operator of this place in the program of this step, until [`Launches::leave`].
    fn enter(&self, step: u32, op: u32);

    /// It has been launched.
    fn leave(&self);
}
