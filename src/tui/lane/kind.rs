//! Kinds of work that a lane tells apart by colour and by letter.

use model::Category;

use diagnosis::{
    analysis::{Bucket, DeviceOp, Layer, OpKind},
    i18n::Text,
    platform::OpClass,
};

/// Number of kinds.
pub const KINDS: usize = 15;

/// What fills a part of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Matrix products.
    Matrix = 0,
    /// Attention.
    Attention = 1,
    /// Norms.
    Norm = 2,
    /// Other kernels that compute.
    Compute = 3,
    /// Whole graph replays whose inside was not recorded.
    Graph = 4,
    /// Collectives and peer transfers.
    Comm = 5,
    /// Waits of collectives for other ranks.
    Wait = 6,
    /// Copies and fills.
    Copy = 7,
    /// Launch calls, and time lost to them.
    Launch = 8,
    /// Synchronisation.
    Sync = 9,
    /// Other work of the host.
    Host = 10,
    /// Operators of the framework.
    Framework = 11,
    /// Annotated ranges and steps.
    Range = 12,
    /// The device itself, from one operation to the next.
    Device = 13,
    /// What cannot be told.
    #[default]
    Unknown = 14,
}

impl Kind {
    /// All kinds in the order of their codes.
    pub const ALL: [Self; KINDS] = [
        Self::Matrix,
        Self::Attention,
        Self::Norm,
        Self::Compute,
        Self::Graph,
        Self::Comm,
        Self::Wait,
        Self::Copy,
        Self::Launch,
        Self::Sync,
        Self::Host,
        Self::Framework,
        Self::Range,
        Self::Device,
        Self::Unknown,
    ];

    /// Kind of a device operation.
    pub fn of_op(op: &DeviceOp) -> Self {
        match op.kind {
            OpKind::Comm => Self::Comm,
            OpKind::Copy(_) => Self::Copy,
            OpKind::Opaque => Self::Graph,
            OpKind::Compute => Self::of_class(op.op.class()),
        }
    }

    /// Kind of an operator.
    pub fn of_class(class: OpClass) -> Self {
        match class {
            OpClass::Matrix => Self::Matrix,
            OpClass::Attention => Self::Attention,
            OpClass::Norm => Self::Norm,
            OpClass::Comm => Self::Comm,
            OpClass::Copy => Self::Copy,
            _ => Self::Compute,
        }
    }

    /// Kind of a slice of which only its category is known.
    pub fn of_category(category: Category) -> Self {
        match category {
            Category::Kernel => Self::Compute,
            Category::Memcpy | Category::Memset => Self::Copy,
            Category::GraphExec => Self::Graph,
            Category::CollectiveCall => Self::Comm,
            Category::HostApi => Self::Launch,
            Category::HostSync | Category::DeviceSync => Self::Sync,
            Category::FrameworkOp => Self::Framework,
            Category::UserRange | Category::DeviceRange | Category::CaptureSpan => Self::Range,
            Category::DeviceEvent => Self::Device,
            Category::Overhead | Category::DeviceOther => Self::Unknown,
            Category::PythonFrame | Category::OsApi | Category::LibraryApi | Category::Gc | Category::HostOther => {
                Self::Host
            }
        }
    }

    /// Kind of what a nanosecond of a step is attributed to.
    pub fn of_bucket(bucket: Bucket) -> Self {
        match bucket {
            Bucket::Compute(op) => Self::of_class(op.class()),
            Bucket::LaunchApi | Bucket::LaunchLatency | Bucket::GraphLaunch | Bucket::GraphUpdate => Self::Launch,
            Bucket::SyncTail | Bucket::SyncIdle => Self::Sync,
            Bucket::Unstarted | Bucket::Dispatch | Bucket::GraphInternal | Bucket::DeviceDep => Self::Device,
            Bucket::Compile | Bucket::Alloc | Bucket::Host(_) => Self::Host,
            Bucket::Copy(_) => Self::Copy,
            Bucket::CommTransfer => Self::Comm,
            Bucket::CommWait => Self::Wait,
            Bucket::GraphOpaque => Self::Graph,
            Bucket::Prof | Bucket::IdleUndecided | Bucket::Unattributed | Bucket::Unseen => Self::Unknown,
        }
    }

    /// The letter that stands for it where there is no colour; a small one says that several slices share the cell.
    pub fn letter(self) -> char {
        match self {
            Self::Matrix => 'M',
            Self::Attention => 'A',
            Self::Norm => 'N',
            Self::Compute => 'E',
            Self::Graph => 'G',
            Self::Comm => 'C',
            Self::Wait => 'W',
            Self::Copy => 'Y',
            Self::Launch => 'L',
            Self::Sync => 'S',
            Self::Host => 'H',
            Self::Framework => 'F',
            Self::Range => 'R',
            Self::Device => 'D',
            Self::Unknown => 'U',
        }
    }

    /// Its name in the legend.
    pub fn text(self) -> Text {
        match self {
            Self::Matrix => Text::new("matrix", "矩阵"),
            Self::Attention => Text::new("attention", "注意力"),
            Self::Norm => Text::new("norm", "归一化"),
            Self::Compute => Text::new("other kernels", "其他内核"),
            Self::Graph => Text::new("graph", "图"),
            Self::Comm => Text::new("communication", "通信"),
            Self::Wait => Text::new("wait for a rank", "等待 rank"),
            Self::Copy => Text::new("copy", "拷贝"),
            Self::Launch => Text::new("launch", "下发"),
            Self::Sync => Text::new("synchronise", "同步"),
            Self::Host => Text::new("host", "主机"),
            Self::Framework => Text::new("framework", "框架"),
            Self::Range => Text::new("range", "区间"),
            Self::Device => Text::new("device", "设备"),
            Self::Unknown => Text::new("unknown", "未知"),
        }
    }

    /// The kind whose colour stands for a layer.
    pub fn of_layer(layer: Layer) -> Self {
        match layer {
            Layer::Operator => Self::Matrix,
            Layer::Runtime => Self::Launch,
            Layer::Communication => Self::Comm,
            Layer::Measurement => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_letters_are_the_kinds_own() {
        for (i, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
            assert_eq!(Kind::ALL.into_iter().filter(|k| k.letter() == kind.letter()).count(), 1, "{kind:?}");
        }
    }
}
