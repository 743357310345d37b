//! From what was recorded to what may be said: estimates with errors, each cell against its
//! baseline, the noise floor, verdicts, findings.
//!
//! What lives here is pure: no clock, no file, no printing. Data flows: a [`record::Run`] →
//! [`Analysis::of`] → `report`, and back to `runner`, which asks between rounds whether all is
//! settled.
//!
//! # The statistics
//!
//! Trials run in rounds: every cell once a round, in random order, the baseline twice. For each
//! round the logarithm of a cell's figure less the mean logarithm of the round's two baselines is one
//! observation of the ratio; slow drift of the machine cancels within a round. The mean of the
//! observations has a Student-t interval whose level is corrected for the number of cells compared
//! and for the number of looks at the data (Bonferroni), in each figure by itself: throughput, p99 and
//! fairness are not corrected for one another. The two baselines of a round differ by
//! nothing but noise: that pair is the noise floor.

mod aggregation;
mod blocks;
mod check_outcome;
mod check_plan;
mod comparison;
mod confounder;
mod decision;
mod estimate;
mod evidence;
mod findings;
mod fleet;
mod limit;
mod metric;
mod noise;
mod pilot;
mod random_effects;
mod recommendation;
mod residuals;
mod run_diff;
mod screening;
mod sessions;
mod shared_decision;
mod summary;
mod tail;
mod transactions;

pub use check_outcome::{CheckOpen, CheckOutcome, check_outcome};
pub use check_plan::{CheckPlan, Layout, NotCheckable, check_plan};
pub use comparison::{
    Comparison, Correction, MIN_TO_SEE_ALIKE, MIN_VERDICT_ROUNDS, Verdict, WIDER_IF_ALIKE, compare,
};
pub use decision::{Choice, Decision, KeepReason, LessDurable, decide};
pub use estimate::{Estimate, t_quantile};
pub use evidence::{Evidence, Layer};
pub use findings::{Change, Check, Expectation, Finding, FindingKind, findings};
pub use fleet::{
    FleetAnalysis, FleetCell, FleetError, FleetGroup, FleetVerdict, HostCell, HostRun,
    HostStanding, Likeness, PooledFigure,
};
pub use limit::{Keeping, Limit, LimitFigure};
pub use metric::{MIN_OPERATIONS_FOR_P99, MIN_OPERATIONS_TO_COMPARE_P99, Metric, fairness};
pub use noise::NoiseFloor;
pub use pilot::{PilotAnswer, PilotQuestion, Visit, pilot};
pub use random_effects::{Pooled, outliers, pool};
pub use recommendation::{
    Answer, FrontCell, LimitKeeping, PassedOver, PassedOverReason, Recommendation, SettingChange,
    Standing, StayReason, TakeReason, Wish, changes, recommend,
};
pub use run_diff::{
    Agreement, DiffCell, DiffFigure, DiffGroup, PlanDifference, PlanPart, RunDiff, Shift,
    ShiftStanding,
};
pub use screening::{Effect, ScreenRatio, ScreenStanding, ScreenedSetting, Screening};
pub use sessions::{
    SessionAnalysis, SessionCell, SessionComparison, SessionFloor, SessionGroup, SessionLevel,
    SessionSummary,
};
pub use shared_decision::{FactorLevels, SharedDecision, shared_decisions};
pub use summary::{
    Analysis, BackgroundSummary, CellSummary, ComparedCell, Group, LatencySummary, LostTrial,
};
pub use transactions::{TransactionSummary, TypeSummary};
