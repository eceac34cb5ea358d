//! The vocabulary of the terminal interface: everything that a person can do, once. Key dispatch, the palette, the help and
//! the footer all read this table, so that they cannot disagree.

use diagnosis::i18n::Text;

/// Where an action means something. Keys of one scope must differ; those of scopes that are never active together need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// In every view.
    Global,
    /// In every view: movement, whatever moves.
    Move,
    /// In lists and tables.
    List,
    /// In the timeline.
    Timeline,
    /// In the dashboard.
    Live,
}

impl Scope {
    /// All scopes in the order of the help.
    pub const ALL: [Self; 5] = [Self::Global, Self::Move, Self::List, Self::Timeline, Self::Live];

    /// Name of its table in a keymap.
    pub fn id(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Move => "move",
            Self::List => "list",
            Self::Timeline => "timeline",
            Self::Live => "live",
        }
    }

    /// Heading in the help.
    pub fn text(self) -> Text {
        match self {
            Self::Global => Text::new("everywhere", "全局"),
            Self::Move => Text::new("movement", "移动"),
            Self::List => Text::new("lists and tables", "列表与表格"),
            Self::Timeline => Text::new("timeline", "时间线"),
            Self::Live => Text::new("dashboard of what runs", "实时仪表盘"),
        }
    }

    /// Whether a key may not mean one thing in this scope and another in `other`.
    pub fn meets(self, other: Self) -> bool {
        let everywhere = |scope| matches!(scope, Self::Global | Self::Move);
        self == other || everywhere(self) || everywhere(other)
    }
}

macro_rules! actions {
    ($($variant:ident $id:literal $scope:ident $en:literal $zh:literal;)*) => {
        /// Something that a person can do.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action {
            $(#[doc = $en] $variant,)*
        }

        impl Action {
            /// All actions in the order of the help.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Name in keymaps.
            pub fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)* }
            }

            /// Where it means something.
            pub fn scope(self) -> Scope {
                match self { $(Self::$variant => Scope::$scope,)* }
            }

            /// What it does, in a few words.
            pub fn text(self) -> Text {
                match self { $(Self::$variant => Text::new($en, $zh),)* }
            }
        }
    };
}

actions! {
    Quit "quit" Global "quit" "退出";
    Back "back" Global "back" "返回";
    Help "help" Global "help" "帮助";
    Palette "palette" Global "commands" "命令";
    Search "search" Global "search" "搜索";
    SearchNext "search_next" Global "next match, evidence" "下一个匹配或证据";
    SearchPrevious "search_previous" Global "previous of those" "上一个匹配或证据";
    NextView "next_view" Global "next view" "下一视图";
    PreviousView "previous_view" Global "previous view" "上一视图";
    ShowOverview "show_overview" Global "overview" "总览";
    ShowTimeline "show_timeline" Global "timeline" "时间线";
    ShowFindings "show_findings" Global "findings" "发现";
    ShowOperators "show_operators" Global "operators" "算子";
    ShowSteps "show_steps" Global "steps" "步";
    ShowRanks "show_ranks" Global "ranks" "rank";
    ShowImport "show_import" Global "import" "导入";
    ShowManifest "show_manifest" Global "manifest" "清单";
    ShowDiff "show_diff" Global "diff" "对比";
    ShowReport "show_report" Global "report" "报告";
    NextPanel "next_panel" Global "next panel" "下一面板";
    PreviousPanel "previous_panel" Global "previous panel" "上一面板";
    NextCapture "next_capture" Global "next capture" "下一采集";
    PreviousCapture "previous_capture" Global "previous capture" "上一采集";
    NextRank "next_rank" Global "next rank" "下一 rank";
    PreviousRank "previous_rank" Global "previous rank" "上一 rank";
    Copy "copy" Global "copy to clipboard" "复制到剪贴板";
    Export "export" Global "write to files" "写入文件";
    CycleTheme "cycle_theme" Global "next theme" "切换主题";
    ToggleMouse "toggle_mouse" Global "mouse on or off" "开关鼠标";
    Redraw "redraw" Global "redraw the screen" "重绘屏幕";
    Suspend "suspend" Global "suspend to the shell" "挂起到 shell";
    Up "up" Move "up" "上";
    Down "down" Move "down" "下";
    Left "left" Move "left" "左";
    Right "right" Move "right" "右";
    PageUp "page_up" Move "page up" "上一页";
    PageDown "page_down" Move "page down" "下一页";
    Top "top" Move "to the beginning" "到开头";
    Bottom "bottom" Move "to the end" "到末尾";
    Open "open" Move "show in the timeline" "在时间线中显示";
    Sort "sort" List "sort by next column" "按下一列排序";
    Invert "invert" List "invert the order" "反转排序";
    Regroup "regroup" List "another grouping" "切换分组";
    CopyRemedy "copy_remedy" List "copy the remedy" "复制建议";
    Explain "explain" List "what the rule says" "规则说明";
    Matches "matches" Timeline "list the matches" "列出匹配";
    CopyLink "copy_link" Timeline "copy a link to here" "复制此处的链接";
    Follow "follow" Timeline "launch or its work" "下发或其执行";
    FollowSlot "follow_slot" Timeline "hold the slot still" "槽位对齐到同一列";
    ZoomIn "zoom_in" Timeline "zoom in" "放大";
    ZoomOut "zoom_out" Timeline "zoom out" "缩小";
    ZoomAll "zoom_all" Timeline "whole capture" "整个采集";
    ZoomFit "zoom_fit" Timeline "fit the selection" "适配所选";
    FarLeft "far_left" Timeline "a screen left" "左移一屏";
    FarRight "far_right" Timeline "a screen right" "右移一屏";
    NextSlice "next_slice" Timeline "next slice" "下一切片";
    PreviousSlice "previous_slice" Timeline "previous slice" "上一切片";
    NextSame "next_same" Timeline "next of same name" "下一同名切片";
    PreviousSame "previous_same" Timeline "previous of same name" "上一同名切片";
    NextStep "next_step" Timeline "next step" "下一步";
    PreviousStep "previous_step" Timeline "previous step" "上一步";
    Costliest "costliest" Timeline "costliest idle time" "最耗时的空闲";
    NextGap "next_gap" Timeline "next idle gap" "下一空闲间隙";
    PreviousGap "previous_gap" Timeline "previous idle gap" "上一空闲间隙";
    NextGroup "next_group" Timeline "next lane group" "下一泳道组";
    PreviousGroup "previous_group" Timeline "previous lane group" "上一泳道组";
    Expand "expand" Timeline "nested lanes or not" "展开或折叠嵌套泳道";
    Mark "mark" Timeline "measuring mark or not" "设置或移除测量标记";
    Bookmark "bookmark" Timeline "bookmark or not" "设置或移除书签";
    NextBookmark "next_bookmark" Timeline "next bookmark" "下一书签";
    PreviousBookmark "previous_bookmark" Timeline "previous bookmark" "上一书签";
    Freeze "freeze" Live "freeze or go on" "冻结或继续";
    OlderStep "older_step" Live "step before" "前一步";
    NewerStep "newer_step" Live "step after" "后一步";
    OldestStep "oldest_step" Live "oldest step" "最早的步";
    NewestStep "newest_step" Live "newest step, go on" "最新的步并继续";
    OpenCapture "open_capture" Live "open the capture" "打开采集";
}

impl Action {
    /// The action with this name.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.id() == id)
    }
}
