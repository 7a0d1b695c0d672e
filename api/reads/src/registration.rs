//! How a service is registered: once. REST, MCP, OpenAPI, discovery, webhooks, signed checkpoints and background tasks follow from it.

use std::sync::Arc;

use feed::Source;
use feed::watchable::WatchableFeed;
use futures_util::future::BoxFuture;
use operation::context::Context;
use operation::{Files, Operation, RecordPage, Service};
use texts::data_file::ShownFile;
use transparency::change_tree::ChangeTree;
use transparency::checkpoints;
use transparency::prover::{CheckpointSigner, SignedTree};
use webhooks::NewMatcher;

use crate::exports::RecordTable;

/// Operations, and what must run for them. Adding the operations to a registration adds that as well.
pub struct Bundle {
    operations: Vec<Operation>,
    matcher: Option<NewMatcher>,
    checkpoints: Option<Source>,
    table: Option<RecordTable>,
}

impl From<Vec<Operation>> for Bundle {
    /// Operations that need nothing to run for them.
    fn from(operations: Vec<Operation>) -> Self {
        Self { operations, matcher: None, checkpoints: None, table: None }
    }
}

impl Bundle {
    /// Operations that register watches, with the matcher that delivers to their webhooks.
    #[must_use]
    pub fn watches(operations: Vec<Operation>, matcher: NewMatcher) -> Self {
        Self { matcher: Some(matcher), ..Self::from(operations) }
    }

    /// Operations over a service's changes, their signed checkpoints with the files of their tree, and the table of its records.
    #[must_use]
    pub fn of_changes(operations: Vec<Operation>, source: Source, table: RecordTable) -> Self {
        Self { checkpoints: Some(source), table: Some(table), ..Self::from(operations) }
    }

    /// Adds what another bundle has, after what this one has.
    #[must_use]
    pub fn and(mut self, more: impl Into<Self>) -> Self {
        let Self { operations, matcher, checkpoints, table } = more.into();
        self.operations.extend(operations);
        self.matcher = self.matcher.or(matcher);
        self.checkpoints = self.checkpoints.or(checkpoints);
        self.table = self.table.or(table);
        self
    }
}

/// The role of a process that runs a background task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRole {
    /// Serves the API.
    Api,
    /// Projects, and signs.
    Project,
}

/// What a background task gets.
pub struct TaskContext {
    /// The context that handlers share.
    pub context: Arc<Context>,
    /// Signs checkpoints.
    pub signer: Arc<dyn CheckpointSigner>,
    /// The name under which this process takes leases.
    pub holder: String,
}

/// A task of a service that runs in the background until the server stops.
#[derive(Clone, Copy)]
pub struct Task {
    /// The role of the processes in which it runs.
    pub role: TaskRole,
    /// Runs it. It returns when the context says that the server stops.
    pub run: fn(Arc<TaskContext>) -> BoxFuture<'static, ()>,
}

/// Reads what the first calls of a service would wait for. It logs a failure, and the calls wait then.
pub type Prepare = fn(Arc<Context>) -> BoxFuture<'static, ()>;

/// One service, registered.
pub struct Registration {
    /// The name, operations and files of the service.
    pub service: Service,
    /// The source of its changes, if checkpoints of their tree are signed.
    pub checkpoints: Option<Source>,
    /// The table of its current records, if it has one.
    pub table: Option<RecordTable>,
    /// Makes the matcher of its watches, if it has watches.
    pub matcher: Option<NewMatcher>,
    /// The tree whose signed checkpoints the service serves, if it has one.
    pub tree: Option<Arc<dyn SignedTree>>,
    /// The background tasks of the service.
    pub tasks: &'static [Task],
    /// What a process that serves the API does before it is ready, if there is anything to do.
    pub prepare: Option<Prepare>,
}

impl Registration {
    /// A service without operations: its name (path prefix, configuration key, view), its title for people, and its purpose in a few
    /// sentences.
    #[must_use]
    pub fn new(name: &'static str, title: &'static str, about: &'static str) -> Self {
        let service = Service {
            name,
            title,
            about,
            operations: Vec::new(),
            files: None,
            data: Vec::new(),
            page: RecordPage::default(),
            entities: &[],
        };
        Self { service, checkpoints: None, table: None, matcher: None, tree: None, tasks: &[], prepare: None }
    }

    /// A service without operations that has the name of its feed: its title for people, and its purpose in a few sentences.
    #[must_use]
    pub fn of<S: WatchableFeed>(title: &'static str, about: &'static str) -> Self {
        Self::new(S::FEED.source.service, title, about)
    }

    /// Adds operations, in the order in which documents list them.
    #[must_use]
    pub fn with(mut self, bundle: impl Into<Bundle>) -> Self {
        let Bundle { operations, matcher, checkpoints, table } = bundle.into();
        self.service.operations.extend(operations);
        self.matcher = self.matcher.or(matcher);
        self.table = self.table.or(table);
        if let Some(source) = checkpoints {
            self.checkpoints = Some(source);
            let files: Files = Arc::new(move |ctx, path| Box::pin(checkpoints::file(ctx, source, path)));
            self = self.with_tree(ChangeTree(source.service)).with_files(files);
        }
        self
    }

    /// Serves the signed checkpoints of a tree.
    #[must_use]
    pub fn with_tree(self, tree: impl SignedTree + 'static) -> Self {
        Self { tree: Some(Arc::new(tree)), ..self }
    }

    /// Serves pages and files next to the operations.
    #[must_use]
    pub fn with_files(mut self, files: Files) -> Self {
        self.service.files = Some(files);
        self
    }

    /// Shows a data file of the service's rules on its reference page.
    #[must_use]
    pub fn with_data(mut self, file: ShownFile) -> Self {
        self.service.data.push(file);
        self
    }

    /// Says how pages for browsers show the records.
    #[must_use]
    pub fn with_page(mut self, page: RecordPage) -> Self {
        self.service.page = page;
        self
    }

    /// Runs tasks in the background.
    #[must_use]
    pub fn with_tasks(self, tasks: &'static [Task]) -> Self {
        Self { tasks, ..self }
    }

    /// Prepares the service before a process that serves the API is ready.
    #[must_use]
    pub fn with_preparation(self, prepare: Prepare) -> Self {
        Self { prepare: Some(prepare), ..self }
    }
}
