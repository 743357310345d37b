//! The stages of a database server's tasks.

/// What a task of a database server does next. Between two stages the task makes a system call, or
/// waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A client's transaction begins.
    Begin,
    /// The call or page of this index in the transaction's list.
    Go(u32),
    /// The transaction's log has to be durable.
    Commit,
    /// The log was written.
    LogWritten,
    /// The log is durable.
    LogDurable,
    /// The page cleaner looks for work.
    Clean,
    /// The cleaner's batch is in the doublewrite buffer.
    Copied,
    /// The page of this index in the batch is written in place.
    Page(u32),
    /// All pages of the batch were written in place.
    PagesWritten,
    /// They are durable.
    PagesDurable,
}
