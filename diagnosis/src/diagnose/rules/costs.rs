//! CO-01 to CO-15: costs that were found without a rule and that no rule names. Their sentences are generated from the selection
//! ([`crate::cause`]); here stands what each kind is.

use model::Area;

use crate::{
    analysis::Layer,
    diagnose::{
        relations::{Advice, Feeds, Relations},
        rule::{Context, Doc, Outcome, Rule},
    },
    i18n::Text,
};

/// A kind of cost.
pub struct Generated(&'static Doc);

impl Rule for Generated {
    fn doc(&self) -> &'static Doc {
        self.0
    }

    fn check(&self, _: &Context<'_>) -> Outcome {
        Outcome::Quiet
    }
}

/// What is alike of all kinds.
const fn doc(id: &'static str, layer: Layer, title: Text, sees: Text, verify: Text) -> Doc {
    let relations = match layer {
        Layer::Communication => Relations { board: &[Feeds::Area(Area::Communication)], ..Relations::NONE },
        _ => Relations::NONE,
    };
    Doc {
        id,
        title,
        layer,
        needs: &[],
        advice: Advice::Host,
        relations,
        sees,
        matters: Text::new(
            "The time is lost there whatever the reason is. No rule names the reason, so look at this place first.",
            "无论原因如何，时间都损失在此处。没有规则指出原因，请先查看此处。",
        ),
        trigger: Text::new(
            "At least 5 % of all counted steps, and no finding speaks of at least half of the same time with a gain of at least half of it.",
            "占全部计入步的 5% 以上，且没有发现涉及其中至少一半的时间并承诺至少一半的收益。",
        ),
        source: Text::new(
            "Simulated runs whose cause is known, and recorded runs whose cause an expert stated; healthy runs stay below 5 %.",
            "已知原因的模拟运行，以及专家判定过原因的实际采集；健康运行低于 5%。",
        ),
        guards: Text::new(
            "Isolated kernels, totals without a timeline, and captures that lost device rows have no such cost.",
            "逐个运行的 kernel、没有时间线的合计、以及丢失设备记录的采集没有此类成本。",
        ),
        verify,
    }
}

const SHRINKS: Text = Text::new("Change it and record again: the cost shrinks.", "修改后重新采集：该成本减小。");

static OWNER: Doc = doc(
    "CO-01",
    Layer::Runtime,
    Text::new("Device idle while the host is busy", "主机忙碌时设备空闲"),
    Text::new(
        "Idle time by what the launching thread did at each instant, down to the deepest record that holds half of it.",
        "按下发线程每一时刻所做的事划分空闲时间，直到仍占一半的最内层记录。",
    ),
    SHRINKS,
);
static TURNAROUND: Doc = doc(
    "CO-02",
    Layer::Runtime,
    Text::new("Late launch after a synchronization", "同步返回后下发偏晚"),
    Text::new(
        "Idle time between the return of a synchronization and the next launch of the same thread.",
        "同一线程从同步返回到下一次下发之间的设备空闲。",
    ),
    SHRINKS,
);
static CHAIN: Doc = doc(
    "CO-03",
    Layer::Runtime,
    Text::new("Launch chain", "逐个下发"),
    Text::new(
        "Idle time between launches that follow one another as fast as the host makes them.",
        "主机以其最快速度逐个下发时，下发之间的设备空闲。",
    ),
    SHRINKS,
);
static NODES: Doc = doc(
    "CO-04",
    Layer::Runtime,
    Text::new("Pauses between graph nodes", "图节点之间的停顿"),
    Text::new("Idle time between nodes of one graph replay.", "同一次图回放的节点之间的空闲。"),
    SHRINKS,
);
static COPIES: Doc = doc(
    "CO-05",
    Layer::Runtime,
    Text::new("Exposed copies", "未被掩盖的拷贝"),
    Text::new("Copies and fills that no kernel or collective runs beside.", "期间没有 kernel 或集合通信的拷贝与填充。"),
    SHRINKS,
);
static CLASS: Doc = doc(
    "CO-06",
    Layer::Operator,
    Text::new("Unfused kernels", "未融合的 kernel"),
    Text::new(
        "Total time of separate casts, copies, gathers, elementwise, reduction and sampling kernels, of kernels that unpack weights, and of operators on the AI CPU.",
        "单独的类型转换、拷贝、收集、逐元素、归约与采样 kernel，解包权重的 kernel，以及 AI CPU 算子的总时间。",
    ),
    SHRINKS,
);
static FLOOR: Doc = doc(
    "CO-07",
    Layer::Operator,
    Text::new("Slow or underfilled kernel", "偏慢或未占满设备的 kernel"),
    Text::new(
        "Grids that fill a fraction of the cores, and kernels that take many times as long per thread as the capture's others.",
        "只占用少量核的 grid，以及每线程耗时为采集中其他 kernel 数倍的 kernel。",
    ),
    SHRINKS,
);
static POSITION: Doc = doc(
    "CO-08",
    Layer::Operator,
    Text::new("Same kernel, slower", "相同 kernel 变慢"),
    Text::new(
        "A kernel between the same neighbours that takes longer late in the run, on one rank, or now and then.",
        "相同前后算子之间的同一 kernel 在运行后段、某个 rank 上或偶发地变慢。",
    ),
    SHRINKS,
);
static COLLECTIVE: Doc = doc(
    "CO-09",
    Layer::Communication,
    Text::new("Slow collective or link", "集合通信或链路慢"),
    Text::new(
        "Small transfers far above the latency of their collective, and pipeline links slower than the best one.",
        "远高于该集合通信延迟的小消息传输，以及慢于最好链路的流水线链路。",
    ),
    SHRINKS,
);
static WAITING: Doc = doc(
    "CO-10",
    Layer::Communication,
    Text::new("Waiting for one rank", "等待某个 rank"),
    Text::new("Waiting in collectives, by the rank that came last.", "集合通信中的等待，按最后到达的 rank 划分。"),
    SHRINKS,
);
static PADDING: Doc = doc(
    "CO-11",
    Layer::Runtime,
    Text::new("Padded rows", "填充行"),
    Text::new(
        "Rows that row-wise kernels of a graph compute above those that are sampled.",
        "图中逐行 kernel 计算的行数超过被采样的行数。",
    ),
    SHRINKS,
);
static EXPOSED: Doc = doc(
    "CO-12",
    Layer::Communication,
    Text::new("Exposed communication", "未被掩盖的通信"),
    Text::new(
        "Collectives that nothing runs beside: a size, without a change that is known to remove it.",
        "期间没有其他工作的集合通信：只给出大小，没有已知的消除办法。",
    ),
    SHRINKS,
);

static PROMPTS: Doc = doc(
    "CO-13",
    Layer::Runtime,
    Text::new("Prompts in decode steps", "解码步中的 prompt"),
    Text::new(
        "What reading prompts adds to the steps that also decode: a size, without a change that is known to remove it.",
        "读取 prompt 使同时解码的步增加的时间：只给出大小，没有已知的消除办法。",
    ),
    SHRINKS,
);

static REST: Doc = doc(
    "CO-14",
    Layer::Runtime,
    Text::new("Idle time that no cost explains", "没有成本解释的空闲"),
    Text::new(
        "Idle time between queued operations, and the rest of what the host explains at many small places: a size.",
        "已入队算子之间的空闲，以及主机在许多小处造成的其余空闲：只给出大小。",
    ),
    SHRINKS,
);

static UNSTARTED: Doc = doc(
    "CO-15",
    Layer::Runtime,
    Text::new("Launched work that does not begin", "已下发但未开始的工作"),
    Text::new(
        "Idle time of at least 0.5 ms after the return of a launch to an empty queue: a size.",
        "向空队列下发返回后至少 0.5 ms 的空闲：只给出大小。",
    ),
    SHRINKS,
);

/// Every kind, in order.
pub static ALL: [Generated; 15] = [
    Generated(&OWNER),
    Generated(&TURNAROUND),
    Generated(&CHAIN),
    Generated(&NODES),
    Generated(&COPIES),
    Generated(&CLASS),
    Generated(&FLOOR),
    Generated(&POSITION),
    Generated(&COLLECTIVE),
    Generated(&WAITING),
    Generated(&PADDING),
    Generated(&EXPOSED),
    Generated(&PROMPTS),
    Generated(&REST),
    Generated(&UNSTARTED),
];
