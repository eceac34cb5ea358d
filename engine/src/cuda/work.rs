//! What the host enqueues for an operator: mostly one kernel, and a few commands where a library of the vendor's takes part.

use super::{cublaslt::Product, launch::Launch, nccl::Exchange, queue::Queue};
use crate::Error;

/// One command.
pub(super) enum Command {
    Kernel(Launch),
    Product(Product),
    Exchange(Exchange),
}

/// The commands of an operator, in their order.
pub(super) struct Work(pub Vec<Command>);

impl Work {
    /// Enqueues all of them.
    pub(super) fn enqueue(&mut self, queue: &Queue) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|command| match command {
            Command::Kernel(launch) => queue.context.driver.check("enqueue a kernel", launch.enqueue(queue)),
            Command::Product(product) => product.enqueue(queue),
            Command::Exchange(exchange) => exchange.enqueue(queue),
        })
    }

    /// Enqueues what may load code when it is launched for the first time, which nothing may do while a stream is captured. Its
    /// result is that of no step, and the first step replaces it.
    pub(super) fn warm(&self, queue: &Queue) -> Result<(), Error> {
        self.0.iter().try_for_each(|command| match command {
            Command::Product(product) => product.enqueue(queue),
            Command::Kernel(_) | Command::Exchange(_) => Ok(()),
        })
    }
}

impl From<Launch> for Work {
    fn from(launch: Launch) -> Self {
        Self(vec![Command::Kernel(launch)])
    }
}
