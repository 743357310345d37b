//! One file for each verb.

mod apply;
mod check;
mod compare;
mod completions;
mod diff;
mod documents;
mod emulate;
mod emulate_server;
mod explain;
mod fit;
mod import;
mod inspect;
mod live_page;
mod load_client;
mod merge;
mod plan;
mod profiles;
mod recommend;
mod record;
mod report;
mod resume;
mod reverse;
mod runs;
mod status;
mod undo;
mod validate;

use crate::exit::Exit;
use clap::Subcommand;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what `compare` would do: cells, refusals with reasons, time
    Plan(plan::PlanArgs),
    /// Compare I/O settings on a directory, a file or a block device
    Compare(compare::CompareArgs),
    /// Continue a run that was interrupted
    Resume(resume::ResumeArgs),
    /// List the recorded runs
    Runs(runs::RunsArgs),
    /// Show a run again: terminal, Markdown, CSV, JSON, an HTML page or a picture
    Report(report::ReportArgs),
    /// Run the few trials that could prove a run's findings wrong
    Check(check::CheckArgs),
    /// Read what other programs printed about their runs, and say what it can show
    Import(import::ImportArgs),
    /// Record what a block device is asked to do, for `compare --replay`
    Record(record::RecordArgs),
    /// Show two runs side by side: what differs, and what that can and cannot say
    Diff(diff::DiffArgs),
    /// Merge the runs of many hosts into one, and say what they show together
    Merge(merge::MergeArgs),
    /// Say what to set after a comparison, why, and what it costs; or to keep what is there
    Recommend(recommend::RecommendArgs),
    /// Set what a run recommends: for a time, until the next reboot, or for good
    Apply(apply::ApplyArgs),
    /// Show what is applied, and whether it is still in force
    Status(status::StatusArgs),
    /// Take back what was applied, and what interrupted programs left changed
    Undo(undo::UndoArgs),
    /// Show what a storage is, how it is set, and which traps apply
    Inspect(inspect::InspectArgs),
    /// Explain a finding, a trap, a scheduler, a setting, a counter
    Explain(explain::ExplainArgs),
    /// Bring up a block device with the timing of a profile, for your own tools, until stopped
    Emulate(emulate::EmulateArgs),
    /// Serve an emulated device's data: started by `emulate` and `compare`, not by people
    #[command(name = ::emulate::SERVER_VERB, hide = true)]
    EmulateServer,
    /// Take applied settings back that nobody confirmed: started by `apply`, not by people
    #[command(hide = true)]
    Reverse(reverse::ReverseArgs),
    /// Be a client that is a process: started by `compare`, not by people
    #[command(name = ::load::CLIENT_VERB, hide = true)]
    LoadClient,
    /// Serve the page of a run: started by `compare --live`, not by people
    #[command(name = crate::live::PAGE_VERB, hide = true)]
    LivePage(live_page::LivePageArgs),
    /// Print a shell's completions of verbs and flags
    Completions(completions::CompletionsArgs),
    /// Check or write the sections of docs/ that the program writes, or write its manual pages
    #[command(hide = true)]
    Documents(documents::DocumentsArgs),
    /// Read a storage for some minutes, and write a device profile of it for the simulated world
    Fit(fit::FitArgs),
    /// List and show device profiles, import drives, replay traces on a device model
    Profiles(profiles::ProfilesArgs),
    /// Run the same cells in the emulated and in the simulated world, and show how far they agree
    Validate(validate::ValidateArgs),
}

impl Command {
    /// Does what the verb says.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Command::Plan(args) => args.run(),
            Command::Compare(args) => args.run(),
            Command::Resume(args) => args.run(),
            Command::Runs(args) => args.run(),
            Command::Report(args) => args.run(),
            Command::Check(args) => args.run(),
            Command::Import(args) => args.run(),
            Command::Record(args) => args.run(),
            Command::Diff(args) => args.run(),
            Command::Merge(args) => args.run(),
            Command::Recommend(args) => args.run(),
            Command::Apply(args) => args.run(),
            Command::Status(args) => args.run(),
            Command::Undo(args) => args.run(),
            Command::Inspect(args) => args.run(),
            Command::Explain(args) => args.run(),
            Command::Emulate(args) => args.run(),
            Command::EmulateServer => emulate_server::run(),
            Command::Reverse(args) => args.run(),
            Command::LoadClient => load_client::run(),
            Command::LivePage(args) => args.run(),
            Command::Completions(args) => args.run(),
            Command::Documents(args) => args.run(),
            Command::Fit(args) => args.run(),
            Command::Profiles(args) => args.run(),
            Command::Validate(args) => args.run(),
        }
    }
}
