//! Which operator a node of a graph is a kernel of. A replay's records name nodes and not operators: what was current when the
//! node was made says which it is, and a graph that is made executable gets copies of its nodes, which are the same operators.

use std::collections::BTreeMap;

/// Most nodes that are known; a step of a large model has some thousand.
const MOST: usize = 1 << 20;

/// Operators of nodes.
#[derive(Debug, Default)]
pub struct Nodes {
    operators: BTreeMap<u64, u64>,
    /// Nodes that found no room.
    pub lost: u64,
}

impl Nodes {
    /// A node was made while `operator` was launched.
    pub fn created(&mut self, node: u64, operator: u64) {
        if self.operators.len() >= MOST && !self.operators.contains_key(&node) {
            self.lost += 1;
            return;
        }
        self.operators.insert(node, operator);
    }

    /// A node was made from another.
    pub fn cloned(&mut self, node: u64, from: u64) {
        if let Some(operator) = self.of(from) {
            self.created(node, operator);
        }
    }

    /// The operator of a node.
    pub fn of(&self, node: u64) -> Option<u64> {
        self.operators.get(&node).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_node_and_their_copies_are_its_operator() {
        let mut nodes = Nodes::default();
        nodes.created(10, 7);
        nodes.cloned(20, 10);
        nodes.cloned(30, 20);
        nodes.cloned(40, 11);
        assert_eq!([10, 20, 30, 40, 11].map(|node| nodes.of(node)), [Some(7), Some(7), Some(7), None, None]);
        // A node of which a driver gives the number again.
        nodes.created(20, 8);
        assert_eq!((nodes.of(20), nodes.of(30)), (Some(8), Some(7)));
    }

    #[test]
    fn there_is_a_bound() {
        let mut nodes = Nodes::default();
        (0..MOST as u64 + 3).for_each(|node| nodes.created(node, 1));
        nodes.created(0, 2);
        assert_eq!((nodes.lost, nodes.of(0), nodes.of(MOST as u64)), (3, Some(2), None));
    }
}
