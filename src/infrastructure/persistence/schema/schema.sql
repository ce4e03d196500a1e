-- revision 0111
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, works_with TEXT DEFAULT '' NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE organization (
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	mcp_enabled BOOLEAN DEFAULT 1 NOT NULL,
	version INTEGER DEFAULT '1' NOT NULL,
	settings TEXT DEFAULT '{}' NOT NULL, inbox_webhook_secret TEXT, had_teams BOOLEAN DEFAULT 0 NOT NULL,
	CONSTRAINT pk_organization PRIMARY KEY (id)
);
CREATE TABLE api_key (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	role TEXT NOT NULL,
	platform BOOLEAN NOT NULL,
	token_hash TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	revoked_at BIGINT,
	expires_at BIGINT,
	last_used_at BIGINT,
	rate_calls INTEGER,
	rate_per_s DOUBLE, person_id TEXT, custom_role TEXT,
	CONSTRAINT pk_api_key PRIMARY KEY (id),
	CONSTRAINT fk_api_key_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT uq_api_key_token_hash UNIQUE (token_hash)
);
CREATE INDEX ix_api_key_organization_id_created_at_id ON api_key (organization_id, created_at, id);
CREATE TABLE agent (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL,
	deleted_at BIGINT, max_running INTEGER, team TEXT,
	CONSTRAINT pk_agent PRIMARY KEY (id),
	CONSTRAINT fk_agent_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE INDEX ix_agent_organization_id_created_at_id ON agent (organization_id, created_at, id);
CREATE UNIQUE INDEX uq_agent_name_in_use ON agent (organization_id, name) WHERE deleted_at IS NULL;
CREATE TABLE agent_version (
	agent_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	config TEXT NOT NULL,
	updated_at BIGINT NOT NULL,
	canary_tokens BLOB,
	CONSTRAINT pk_agent_version PRIMARY KEY (agent_id, version),
	CONSTRAINT fk_agent_version_agent_id_agent FOREIGN KEY(agent_id) REFERENCES agent (id) ON DELETE CASCADE
);
CREATE TABLE secret (
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	value BLOB NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	CONSTRAINT pk_secret PRIMARY KEY (organization_id, name),
	CONSTRAINT fk_secret_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE INDEX ix_secret_organization_id_created_at_name ON secret (organization_id, created_at, name);
CREATE TABLE model_provider (
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	base_url TEXT NOT NULL,
	api_key BLOB,
	secret_name TEXT,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL, wire TEXT DEFAULT 'auto' NOT NULL, deployments TEXT, deployment_keys BLOB, echo_reasoning TEXT DEFAULT 'tool_loop' NOT NULL, cloud TEXT,
	CONSTRAINT pk_model_provider PRIMARY KEY (organization_id, name),
	CONSTRAINT fk_model_provider_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE INDEX ix_model_provider_organization_id_created_at_name ON model_provider (organization_id, created_at, name);
CREATE TABLE mcp_server (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	slug TEXT NOT NULL,
	version INTEGER NOT NULL,
	config TEXT NOT NULL,
	secrets BLOB NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	installed_version TEXT,
	installed_location TEXT,
	installed_at BIGINT, installed_lock BLOB, team TEXT,
	CONSTRAINT pk_mcp_server PRIMARY KEY (id),
	CONSTRAINT fk_mcp_server_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT uq_mcp_server_organization_id_slug UNIQUE (organization_id, slug)
);
CREATE INDEX ix_mcp_server_organization_id_created_at_id ON mcp_server (organization_id, created_at, id);
CREATE TABLE mcp_server_state (
	server_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	server_version INTEGER NOT NULL,
	description TEXT NOT NULL,
	taken_at BIGINT NOT NULL,
	revision INTEGER DEFAULT '1' NOT NULL,
	CONSTRAINT pk_mcp_server_state PRIMARY KEY (server_id),
	CONSTRAINT fk_mcp_server_state_server_id_mcp_server FOREIGN KEY(server_id) REFERENCES mcp_server (id) ON DELETE CASCADE
);
CREATE TABLE mcp_tool_definition (
	server_id TEXT NOT NULL,
	position INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	definition TEXT NOT NULL,
	standing TEXT,
	approved_definition TEXT, rejection TEXT,
	CONSTRAINT pk_mcp_tool_definition PRIMARY KEY (server_id, position),
	CONSTRAINT fk_mcp_tool_definition_server_id_mcp_server FOREIGN KEY(server_id) REFERENCES mcp_server (id) ON DELETE CASCADE
);
CREATE INDEX ix_mcp_tool_definition_server_id_name ON mcp_tool_definition (server_id, name);
CREATE TABLE mcp_connection_state (
	server_id TEXT NOT NULL,
	process TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	server_version INTEGER NOT NULL,
	name TEXT NOT NULL,
	state TEXT NOT NULL,
	since BIGINT NOT NULL,
	last_error TEXT,
	protocol_version TEXT,
	tool_count INTEGER,
	seen_at BIGINT NOT NULL,
	CONSTRAINT pk_mcp_connection_state PRIMARY KEY (server_id, process),
	CONSTRAINT fk_mcp_connection_state_server_id_mcp_server FOREIGN KEY(server_id) REFERENCES mcp_server (id) ON DELETE CASCADE
);
CREATE INDEX ix_mcp_connection_state_process ON mcp_connection_state (process);
CREATE TABLE oauth_grant (
	organization_id TEXT NOT NULL,
	server_id TEXT NOT NULL,
	issuer TEXT NOT NULL,
	sealed BLOB NOT NULL,
	updated_at BIGINT NOT NULL,
	claim TEXT,
	claimed_until BIGINT,
	CONSTRAINT pk_oauth_grant PRIMARY KEY (organization_id, server_id, issuer),
	CONSTRAINT fk_oauth_grant_server_id_mcp_server FOREIGN KEY(server_id) REFERENCES mcp_server (id) ON DELETE CASCADE
);
CREATE INDEX ix_oauth_grant_server_id ON oauth_grant (server_id);
CREATE TABLE oauth_authorization (
	state_hash TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	server_id TEXT NOT NULL,
	expires_at BIGINT NOT NULL,
	sealed BLOB NOT NULL,
	CONSTRAINT pk_oauth_authorization PRIMARY KEY (state_hash),
	CONSTRAINT fk_oauth_authorization_server_id_mcp_server FOREIGN KEY(server_id) REFERENCES mcp_server (id) ON DELETE CASCADE
);
CREATE INDEX ix_oauth_authorization_server_id ON oauth_authorization (server_id);
CREATE INDEX ix_oauth_authorization_expires_at ON oauth_authorization (expires_at);
CREATE TABLE thread (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	metadata TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	quarantined_at BIGINT,
	quarantined_by TEXT,
	quarantined_for TEXT, forked_from TEXT, forked_before TEXT, team TEXT,
	CONSTRAINT pk_thread PRIMARY KEY (id),
	CONSTRAINT fk_thread_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE INDEX ix_thread_organization_id_created_at_id ON thread (organization_id, created_at, id);
CREATE INDEX ix_thread_quarantined ON thread (id) WHERE quarantined_at IS NOT NULL;
CREATE TABLE message (
	thread_id TEXT NOT NULL,
	position INTEGER NOT NULL,
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	run_id TEXT,
	role TEXT NOT NULL,
	content TEXT NOT NULL,
	superseded BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL, items_key TEXT, provider_items BLOB,
	CONSTRAINT pk_message PRIMARY KEY (thread_id, position),
	CONSTRAINT fk_message_thread_id_thread FOREIGN KEY(thread_id) REFERENCES thread (id) ON DELETE CASCADE,
	CONSTRAINT uq_message_run_id_id UNIQUE (run_id, id)
);
CREATE TABLE source (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	size BIGINT NOT NULL,
	digest TEXT NOT NULL,
	chunks INTEGER NOT NULL,
	problem TEXT,
	run_id TEXT,
	finished BOOLEAN NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_source PRIMARY KEY (id),
	CONSTRAINT fk_source_thread_id_thread FOREIGN KEY(thread_id) REFERENCES thread (id) ON DELETE CASCADE
);
CREATE INDEX ix_source_thread_id_created_at_id ON source (thread_id, created_at, id);
CREATE INDEX ix_source_on_its_way ON source (organization_id, created_at) WHERE NOT finished;
CREATE TABLE source_part (
	source_id TEXT NOT NULL,
	position INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	data BLOB NOT NULL,
	CONSTRAINT pk_source_part PRIMARY KEY (source_id, position),
	CONSTRAINT fk_source_part_source_id_source FOREIGN KEY(source_id) REFERENCES source (id) ON DELETE CASCADE
);
CREATE TABLE source_chunk (
	id INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	source_id TEXT NOT NULL,
	position INTEGER NOT NULL,
	start_line INTEGER NOT NULL,
	end_line INTEGER NOT NULL,
	page INTEGER,
	heading TEXT,
	text TEXT NOT NULL,
	words TEXT NOT NULL,
	CONSTRAINT pk_source_chunk PRIMARY KEY (id),
	CONSTRAINT fk_source_chunk_source_id_source FOREIGN KEY(source_id) REFERENCES source (id) ON DELETE CASCADE
);
CREATE INDEX ix_source_chunk_source_id_position ON source_chunk (source_id, position);
CREATE INDEX ix_source_chunk_thread_id ON source_chunk (thread_id);
CREATE VIRTUAL TABLE source_words USING fts5(
        thread_id, words, content='source_chunk', content_rowid='id',
        tokenize="unicode61 remove_diacritics 0 tokenchars '_'"
    );
CREATE TRIGGER source_chunk_added AFTER INSERT ON source_chunk BEGIN
        INSERT INTO source_words (rowid, thread_id, words) VALUES (new.id, new.thread_id, new.words);
    END;
CREATE TRIGGER source_chunk_removed AFTER DELETE ON source_chunk BEGIN
        INSERT INTO source_words (source_words, rowid, thread_id, words)
        VALUES ('delete', old.id, old.thread_id, old.words);
    END;
CREATE TABLE run (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	agent_version INTEGER NOT NULL,
	status TEXT NOT NULL,
	attempt INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	last_seq INTEGER NOT NULL,
	cancel_requested_by TEXT,
	rolled_back BOOLEAN NOT NULL,
	worker_id TEXT,
	lease_expires_at BIGINT,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cost_nano_usd BIGINT NOT NULL,
	turns INTEGER NOT NULL,
	tool_calls INTEGER NOT NULL,
	active_s DOUBLE NOT NULL,
	pending TEXT,
	output TEXT,
	error_code TEXT,
	error_detail TEXT,
	incomplete_reason TEXT,
	requested_by TEXT,
	created_at BIGINT NOT NULL,
	started_at BIGINT,
	finished_at BIGINT,
	lapses INTEGER DEFAULT '0' NOT NULL, provider_error TEXT, reasoning_tokens BIGINT DEFAULT '0' NOT NULL, usage_estimated BOOLEAN DEFAULT 0 NOT NULL, output_json TEXT, lane TEXT DEFAULT 'normal' NOT NULL, has_push_configs BOOLEAN DEFAULT 0 NOT NULL, team TEXT,
	CONSTRAINT pk_run PRIMARY KEY (id),
	CONSTRAINT ck_run_ck_run_status CHECK (status IN ('queued', 'in_progress', 'requires_action', 'completed', 'incomplete', 'failed', 'cancelled', 'halted')),
	CONSTRAINT fk_run_thread_id_thread FOREIGN KEY(thread_id) REFERENCES thread (id) ON DELETE CASCADE
);
CREATE INDEX ix_run_agent_id_created_at_id ON run (agent_id, created_at, id);
CREATE INDEX ix_run_organization_id_created_at_id ON run (organization_id, created_at, id);
CREATE INDEX ix_run_thread_id_created_at_id ON run (thread_id, created_at, id);
CREATE UNIQUE INDEX uq_run_active_thread ON run (thread_id) WHERE status IN ('in_progress', 'requires_action');
CREATE INDEX ix_run_unfinished ON run (status, thread_id, attempt, created_at, id) WHERE status IN ('queued', 'in_progress', 'requires_action');
CREATE TABLE run_request (
	run_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	input TEXT NOT NULL,
	model TEXT NOT NULL,
	limits TEXT NOT NULL,
	tool_allowlist TEXT,
	metadata TEXT NOT NULL,
	overview TEXT,
	webhook TEXT,
	wired TEXT,
	webhook_url BLOB, model_settings TEXT, retry_of TEXT, output_schema TEXT, client_tools TEXT, instructions TEXT, history_key TEXT, client_request TEXT,
	CONSTRAINT pk_run_request PRIMARY KEY (run_id),
	CONSTRAINT fk_run_request_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
CREATE TABLE idempotency_key (
	organization_id TEXT NOT NULL,
	"key" TEXT NOT NULL,
	body_digest TEXT NOT NULL,
	run_id TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_idempotency_key PRIMARY KEY (organization_id, "key"),
	CONSTRAINT fk_idempotency_key_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX ix_idempotency_key_organization_id_created_at ON idempotency_key (organization_id, created_at);
CREATE INDEX ix_idempotency_key_run_id ON idempotency_key (run_id);
CREATE TABLE run_event (
	run_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	type TEXT NOT NULL,
	at BIGINT NOT NULL,
	data TEXT,
	message_id TEXT,
	CONSTRAINT pk_run_event PRIMARY KEY (run_id, seq),
	CONSTRAINT fk_run_event_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE TABLE tool_call (
	run_id TEXT NOT NULL,
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	turn INTEGER NOT NULL,
	position INTEGER NOT NULL,
	call TEXT NOT NULL,
	type TEXT,
	server_id TEXT,
	repeatable BOOLEAN NOT NULL,
	state TEXT NOT NULL,
	recorded_at BIGINT NOT NULL,
	outcome TEXT,
	error_code TEXT,
	result TEXT,
	duration_ms INTEGER,
	settled_at BIGINT,
	message_id TEXT,
	elicitation TEXT,
	input BLOB,
	approval TEXT,
	CONSTRAINT pk_tool_call PRIMARY KEY (run_id, id),
	CONSTRAINT fk_tool_call_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
CREATE TABLE usage (
	organization_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	agent_id TEXT NOT NULL,
	model TEXT NOT NULL,
	model_calls BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	cost_nano_usd BIGINT NOT NULL,
	unpriced_calls BIGINT NOT NULL, reasoning_tokens BIGINT DEFAULT '0' NOT NULL, estimated_calls BIGINT DEFAULT '0' NOT NULL,
	CONSTRAINT pk_usage PRIMARY KEY (organization_id, day, agent_id, model),
	CONSTRAINT fk_usage_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE TABLE budget_reservation (
	run_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	amount_nano_usd BIGINT NOT NULL,
	CONSTRAINT pk_budget_reservation PRIMARY KEY (run_id),
	CONSTRAINT fk_budget_reservation_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
CREATE INDEX ix_budget_reservation_organization_id ON budget_reservation (organization_id);
CREATE TABLE schedule (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	cron TEXT NOT NULL,
	timezone TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	thread_id TEXT,
	input TEXT NOT NULL,
	strategy TEXT NOT NULL,
	limits TEXT NOT NULL,
	model TEXT,
	tool_allowlist TEXT,
	metadata TEXT NOT NULL,
	webhook TEXT,
	missed TEXT NOT NULL,
	enabled BOOLEAN NOT NULL,
	next_fire_at BIGINT,
	last_fired_at BIGINT,
	last_run_id TEXT,
	error_code TEXT,
	error_detail TEXT,
	error_at BIGINT,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL,
	updated_at BIGINT NOT NULL,
	webhook_url BLOB, model_settings TEXT DEFAULT '{}' NOT NULL, lane TEXT, output_schema TEXT, person_id TEXT,
	CONSTRAINT pk_schedule PRIMARY KEY (id),
	CONSTRAINT ck_schedule_ck_schedule_paused CHECK (enabled OR next_fire_at IS NULL),
	CONSTRAINT fk_schedule_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT fk_schedule_last_run_id_run FOREIGN KEY(last_run_id) REFERENCES run (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT uq_schedule_organization_id_name UNIQUE (organization_id, name)
);
CREATE INDEX ix_schedule_organization_id_created_at_id ON schedule (organization_id, created_at, id);
CREATE INDEX ix_schedule_next_fire_at_id ON schedule (next_fire_at, id);
CREATE INDEX ix_schedule_last_run_id ON schedule (last_run_id);
CREATE TABLE webhook_key (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	secret BLOB NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT,
	CONSTRAINT pk_webhook_key PRIMARY KEY (id),
	CONSTRAINT fk_webhook_key_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX uq_webhook_key_newest ON webhook_key (organization_id) WHERE expires_at IS NULL;
CREATE INDEX ix_webhook_key_organization_id ON webhook_key (organization_id);
CREATE TABLE audit_event (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	action TEXT NOT NULL,
	actor TEXT NOT NULL,
	resource TEXT NOT NULL,
	at BIGINT NOT NULL,
	run_id TEXT,
	tool TEXT,
	server_id TEXT,
	duration_ms INTEGER,
	arguments_digest TEXT,
	details TEXT NOT NULL,
	CONSTRAINT pk_audit_event PRIMARY KEY (id)
)
 WITHOUT ROWID
;
CREATE INDEX ix_audit_event_organization_id_at_id ON audit_event (organization_id, at, id);
CREATE INDEX ix_audit_event_run_id ON audit_event (run_id) WHERE run_id IS NOT NULL;
CREATE TABLE audit_seal (
	organization_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	event_id TEXT NOT NULL,
	key_id TEXT NOT NULL,
	seal TEXT NOT NULL,
	sealed_at BIGINT NOT NULL,
	CONSTRAINT pk_audit_seal PRIMARY KEY (organization_id, number),
	CONSTRAINT uq_audit_seal_event_id UNIQUE (event_id)
)
 WITHOUT ROWID
;
CREATE TABLE audit_head (
	organization_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	seal TEXT NOT NULL,
	pruned_through BIGINT NOT NULL,
	pruned_seal TEXT NOT NULL,
	key_id TEXT NOT NULL,
	signature TEXT NOT NULL,
	CONSTRAINT pk_audit_head PRIMARY KEY (organization_id)
);
CREATE TABLE audit_key (
	id TEXT NOT NULL,
	secret BLOB NOT NULL,
	CONSTRAINT pk_audit_key PRIMARY KEY (id)
);
CREATE TABLE workflow (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	version INTEGER NOT NULL,
	secrets TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	deleted_at BIGINT, team TEXT,
	CONSTRAINT pk_workflow PRIMARY KEY (id),
	CONSTRAINT fk_workflow_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE INDEX ix_workflow_organization_id_created_at_id ON workflow (organization_id, created_at, id);
CREATE UNIQUE INDEX uq_workflow_name_in_use ON workflow (organization_id, name) WHERE deleted_at IS NULL;
CREATE TABLE workflow_version (
	workflow_id TEXT NOT NULL,
	version INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	graph TEXT NOT NULL,
	updated_at BIGINT NOT NULL, source_text TEXT, team TEXT,
	CONSTRAINT pk_workflow_version PRIMARY KEY (workflow_id, version),
	CONSTRAINT fk_workflow_version_workflow_id_workflow FOREIGN KEY(workflow_id) REFERENCES workflow (id) ON DELETE CASCADE
);
CREATE TABLE workflow_run (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	workflow_id TEXT NOT NULL,
	workflow_version INTEGER NOT NULL,
	status TEXT NOT NULL,
	input TEXT,
	output TEXT,
	error TEXT,
	failed_node TEXT,
	requested_by TEXT NOT NULL,
	cancel_requested_by TEXT,
	attempt INTEGER NOT NULL,
	epoch INTEGER NOT NULL,
	last_seq INTEGER NOT NULL,
	worker_id TEXT,
	lease_expires_at BIGINT,
	wake_at BIGINT,
	created_at BIGINT NOT NULL,
	started_at BIGINT,
	finished_at BIGINT,
	idempotency_key TEXT,
	body_digest TEXT, team TEXT,
	CONSTRAINT pk_workflow_run PRIMARY KEY (id),
	CONSTRAINT fk_workflow_run_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT fk_workflow_run_workflow_id_workflow FOREIGN KEY(workflow_id) REFERENCES workflow (id) ON DELETE CASCADE
);
CREATE INDEX ix_workflow_run_organization_id_created_at_id ON workflow_run (organization_id, created_at, id);
CREATE INDEX ix_workflow_run_workflow_id ON workflow_run (workflow_id);
CREATE INDEX ix_workflow_run_unfinished ON workflow_run (created_at, id) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX uq_workflow_run_idempotency_key ON workflow_run (organization_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE TABLE workflow_node_run (
	workflow_run_id TEXT NOT NULL,
	node_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	state TEXT NOT NULL,
	waits_for TEXT,
	waits_seq INTEGER,
	CONSTRAINT pk_workflow_node_run PRIMARY KEY (workflow_run_id, node_id),
	CONSTRAINT fk_workflow_node_run_workflow_run_id_workflow_run FOREIGN KEY(workflow_run_id) REFERENCES workflow_run (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE INDEX ix_workflow_node_run_waits_for ON workflow_node_run (waits_for) WHERE waits_for IS NOT NULL;
CREATE TABLE workflow_event (
	workflow_run_id TEXT NOT NULL,
	seq INTEGER NOT NULL,
	organization_id TEXT NOT NULL,
	type TEXT NOT NULL,
	at BIGINT NOT NULL,
	data TEXT NOT NULL,
	CONSTRAINT pk_workflow_event PRIMARY KEY (workflow_run_id, seq),
	CONSTRAINT fk_workflow_event_workflow_run_id_workflow_run FOREIGN KEY(workflow_run_id) REFERENCES workflow_run (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE TABLE workflow_tool (
	workflow_run_id TEXT NOT NULL,
	node_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	sealed BLOB NOT NULL,
	registered_at BIGINT NOT NULL, bound BLOB, expires_at BIGINT,
	CONSTRAINT pk_workflow_tool PRIMARY KEY (workflow_run_id, node_id),
	CONSTRAINT fk_workflow_tool_workflow_run_id_workflow_run FOREIGN KEY(workflow_run_id) REFERENCES workflow_run (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE TABLE gateway_session (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	thread_id TEXT NOT NULL,
	run_id TEXT,
	token_hash TEXT,
	names TEXT NOT NULL,
	created_by TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	revoked_at BIGINT,
	node_ids TEXT,
	workflow_run_id TEXT, client_id TEXT, client_name TEXT, token_expires_at BIGINT,
	CONSTRAINT pk_gateway_session PRIMARY KEY (id),
	CONSTRAINT fk_gateway_session_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT fk_gateway_session_thread_id_thread FOREIGN KEY(thread_id) REFERENCES thread (id) ON DELETE CASCADE,
	CONSTRAINT fk_gateway_session_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_gateway_session_workflow_run_id_workflow_run FOREIGN KEY(workflow_run_id) REFERENCES workflow_run (id) ON DELETE CASCADE,
	CONSTRAINT uq_gateway_session_token_hash UNIQUE (token_hash)
);
CREATE INDEX ix_gateway_session_thread_id ON gateway_session (thread_id);
CREATE INDEX ix_gateway_session_run_id ON gateway_session (run_id);
CREATE INDEX ix_gateway_session_organization_id_created_at_id ON gateway_session (organization_id, created_at, id);
CREATE INDEX ix_gateway_session_workflow_run_id ON gateway_session (workflow_run_id);
CREATE TABLE gateway_client (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	session_id TEXT NOT NULL,
	log_level TEXT,
	subscriptions TEXT NOT NULL,
	ended_at BIGINT,
	CONSTRAINT pk_gateway_client PRIMARY KEY (id),
	CONSTRAINT fk_gateway_client_session_id_gateway_session FOREIGN KEY(session_id) REFERENCES gateway_session (id) ON DELETE CASCADE
);
CREATE INDEX ix_gateway_client_session_id ON gateway_client (session_id);
CREATE TABLE gateway_call (
	session_id TEXT NOT NULL,
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	type TEXT NOT NULL,
	server_id TEXT,
	params TEXT NOT NULL,
	state TEXT NOT NULL,
	recorded_at BIGINT NOT NULL,
	approval_id TEXT,
	outcome TEXT,
	error_code TEXT,
	result TEXT,
	duration_ms INTEGER,
	settled_at BIGINT,
	due_at BIGINT,
	CONSTRAINT pk_gateway_call PRIMARY KEY (session_id, id),
	CONSTRAINT fk_gateway_call_session_id_gateway_session FOREIGN KEY(session_id) REFERENCES gateway_session (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE INDEX ix_gateway_call_open ON gateway_call (session_id, name) WHERE state <> 'settled';
CREATE TABLE gateway_note (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	session_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	call_id TEXT,
	sealed BLOB,
	answer BLOB,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	CONSTRAINT pk_gateway_note PRIMARY KEY (id),
	CONSTRAINT fk_gateway_note_session_id_gateway_session FOREIGN KEY(session_id) REFERENCES gateway_session (id) ON DELETE CASCADE
);
CREATE INDEX ix_gateway_note_expires_at ON gateway_note (expires_at);
CREATE INDEX ix_gateway_note_session_id_call_id_id ON gateway_note (session_id, call_id, id);
CREATE TABLE approval (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	run_id TEXT,
	tool_call_id TEXT NOT NULL,
	tool TEXT NOT NULL,
	server_id TEXT,
	arguments TEXT NOT NULL,
	digest TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	agent_version INTEGER NOT NULL,
	requested_by TEXT,
	allow_self_approval BOOLEAN NOT NULL,
	cause TEXT NOT NULL,
	state TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	decided_at BIGINT,
	decided_by TEXT,
	reason TEXT,
	edited_arguments TEXT,
	gateway_session_id TEXT, server TEXT, approvers TEXT, approvals_needed INTEGER, consents TEXT,
	CONSTRAINT pk_approval PRIMARY KEY (id),
	CONSTRAINT fk_approval_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT fk_approval_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_approval_gateway_session_id_gateway_session FOREIGN KEY(gateway_session_id) REFERENCES gateway_session (id) ON DELETE CASCADE
);
CREATE INDEX ix_approval_organization_id_created_at_id ON approval (organization_id, created_at, id);
CREATE INDEX ix_approval_run_id ON approval (run_id);
CREATE INDEX ix_approval_pending ON approval (organization_id, created_at, id) WHERE state = 'pending';
CREATE INDEX ix_approval_gateway_session_id ON approval (gateway_session_id);
CREATE TABLE timer (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	subject_id TEXT NOT NULL,
	due_at BIGINT NOT NULL,
	CONSTRAINT pk_timer PRIMARY KEY (id),
	CONSTRAINT fk_timer_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE INDEX ix_timer_due_at_id ON timer (due_at, id);
CREATE INDEX ix_timer_subject_id ON timer (subject_id);
CREATE INDEX ix_message_items_key ON message (items_key) WHERE items_key IS NOT NULL;
CREATE INDEX ix_run_request_history_key ON run_request (organization_id, history_key) WHERE history_key IS NOT NULL;
CREATE INDEX ix_run_queued ON run (organization_id, agent_id, lane, created_at) WHERE status = 'queued';
CREATE INDEX ix_agent_bounded ON agent (id, max_running) WHERE max_running IS NOT NULL;
CREATE TABLE identity_provider (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	issuer TEXT NOT NULL,
	client_id TEXT NOT NULL,
	client_secret BLOB,
	scopes TEXT NOT NULL,
	audiences TEXT NOT NULL,
	rules TEXT NOT NULL,
	installation BOOLEAN NOT NULL,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL, cli_client_id TEXT,
	CONSTRAINT pk_identity_provider PRIMARY KEY (id),
	CONSTRAINT fk_identity_provider_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT uq_identity_provider_organization_id_name UNIQUE (organization_id, name)
);
CREATE INDEX ix_identity_provider_issuer ON identity_provider (issuer);
CREATE TABLE user_account (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	provider_id TEXT NOT NULL,
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	email TEXT,
	name TEXT,
	role TEXT NOT NULL,
	role_fixed BOOLEAN NOT NULL,
	status TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	last_sign_in_at BIGINT, custom_role TEXT, may_impersonate BOOLEAN DEFAULT 0 NOT NULL,
	CONSTRAINT pk_user_account PRIMARY KEY (id),
	CONSTRAINT fk_user_account_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT uq_user_account_organization_id_issuer_subject UNIQUE (organization_id, issuer, subject)
);
CREATE INDEX ix_user_account_organization_id_created_at_id ON user_account (organization_id, created_at, id);
CREATE TABLE limit_lease (
	limited TEXT NOT NULL,
	holder TEXT NOT NULL,
	amount INTEGER NOT NULL,
	valid_until FLOAT NOT NULL,
	CONSTRAINT pk_limit_lease PRIMARY KEY (limited, holder)
);
CREATE INDEX ix_limit_lease_holder ON limit_lease (holder);
CREATE TABLE audit_forward (
	organization_id TEXT NOT NULL,
	number BIGINT NOT NULL,
	sent_at BIGINT NOT NULL,
	CONSTRAINT pk_audit_forward PRIMARY KEY (organization_id)
);
CREATE TABLE gateway_grant (
	session_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	client_hash TEXT NOT NULL,
	redirect_uri TEXT NOT NULL,
	resource TEXT NOT NULL,
	challenge TEXT NOT NULL,
	code_hash TEXT NOT NULL,
	code_expires_at BIGINT NOT NULL,
	redeemed_at BIGINT,
	family_hash TEXT,
	refresh_hash TEXT,
	CONSTRAINT pk_gateway_grant PRIMARY KEY (session_id),
	CONSTRAINT fk_gateway_grant_session_id_gateway_session FOREIGN KEY(session_id) REFERENCES gateway_session (id) ON DELETE CASCADE,
	CONSTRAINT uq_gateway_grant_code_hash UNIQUE (code_hash),
	CONSTRAINT uq_gateway_grant_family_hash UNIQUE (family_hash)
);
CREATE INDEX ix_gateway_grant_client_hash ON gateway_grant (client_hash);
CREATE TABLE scim_token (
	provider_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	token_hash TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_scim_token PRIMARY KEY (provider_id),
	CONSTRAINT fk_scim_token_provider_id_identity_provider FOREIGN KEY(provider_id) REFERENCES identity_provider (id) ON DELETE CASCADE,
	CONSTRAINT uq_scim_token_token_hash UNIQUE (token_hash)
);
CREATE TABLE provisioned_user (
	user_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	provider_id TEXT NOT NULL,
	name_key TEXT NOT NULL,
	entry TEXT NOT NULL,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL,
	changed_at BIGINT NOT NULL,
	CONSTRAINT pk_provisioned_user PRIMARY KEY (user_id),
	CONSTRAINT fk_provisioned_user_user_id_user_account FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT fk_provisioned_user_provider_id_identity_provider FOREIGN KEY(provider_id) REFERENCES identity_provider (id) ON DELETE CASCADE,
	CONSTRAINT uq_provisioned_user_provider_id_name_key UNIQUE (provider_id, name_key)
);
CREATE TABLE user_group (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	provider_id TEXT NOT NULL,
	name TEXT NOT NULL,
	external_id TEXT,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL,
	changed_at BIGINT NOT NULL,
	CONSTRAINT pk_user_group PRIMARY KEY (id),
	CONSTRAINT fk_user_group_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT fk_user_group_provider_id_identity_provider FOREIGN KEY(provider_id) REFERENCES identity_provider (id) ON DELETE CASCADE,
	CONSTRAINT uq_user_group_provider_id_name UNIQUE (provider_id, name)
);
CREATE INDEX ix_user_group_organization_id_name ON user_group (organization_id, name);
CREATE TABLE user_group_member (
	group_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	CONSTRAINT pk_user_group_member PRIMARY KEY (group_id, user_id),
	CONSTRAINT fk_user_group_member_group_id_user_group FOREIGN KEY(group_id) REFERENCES user_group (id) ON DELETE CASCADE,
	CONSTRAINT fk_user_group_member_user_id_user_account FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);
CREATE INDEX ix_user_group_member_user_id ON user_group_member (user_id);
CREATE TABLE push_config (
	run_id TEXT NOT NULL,
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	receiver TEXT NOT NULL,
	sealed BLOB NOT NULL,
	created_at BIGINT NOT NULL,
	CONSTRAINT pk_push_config PRIMARY KEY (run_id, id),
	CONSTRAINT fk_push_config_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);
CREATE TABLE organization_group (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	claims TEXT NOT NULL,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL,
	changed_at BIGINT NOT NULL,
	CONSTRAINT pk_organization_group PRIMARY KEY (id),
	CONSTRAINT fk_organization_group_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT uq_organization_group_organization_id_name UNIQUE (organization_id, name)
);
CREATE TABLE organization_group_member (
	group_id TEXT NOT NULL,
	user_id TEXT NOT NULL,
	by_claim BOOLEAN NOT NULL,
	organization_id TEXT NOT NULL,
	CONSTRAINT pk_organization_group_member PRIMARY KEY (group_id, user_id, by_claim),
	CONSTRAINT fk_organization_group_member_group_id_organization_group FOREIGN KEY(group_id) REFERENCES organization_group (id) ON DELETE CASCADE,
	CONSTRAINT fk_organization_group_member_user_id_user_account FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);
CREATE INDEX ix_organization_group_member_user_id ON organization_group_member (user_id);
CREATE TABLE person_grant (
	organization_id TEXT NOT NULL,
	server_id TEXT NOT NULL,
	person_id TEXT NOT NULL,
	issuer TEXT NOT NULL,
	sealed BLOB NOT NULL,
	updated_at BIGINT NOT NULL,
	claim TEXT,
	claimed_until BIGINT,
	CONSTRAINT pk_person_grant PRIMARY KEY (organization_id, server_id, person_id, issuer),
	CONSTRAINT fk_person_grant_server_id_mcp_server FOREIGN KEY(server_id) REFERENCES mcp_server (id) ON DELETE CASCADE,
	CONSTRAINT fk_person_grant_person_id_user_account FOREIGN KEY(person_id) REFERENCES user_account (id) ON DELETE CASCADE
);
CREATE INDEX ix_person_grant_server_id ON person_grant (server_id);
CREATE INDEX ix_person_grant_person_id ON person_grant (person_id);
CREATE INDEX ix_run_not_completed ON run (organization_id, status, created_at, id) WHERE status NOT IN ('queued', 'in_progress', 'requires_action', 'completed');
CREATE TABLE person_usage (
	organization_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	started_by TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	model TEXT NOT NULL,
	model_calls BIGINT NOT NULL,
	input_tokens BIGINT NOT NULL,
	output_tokens BIGINT NOT NULL,
	cached_tokens BIGINT NOT NULL,
	reasoning_tokens BIGINT NOT NULL,
	cost_nano_usd BIGINT NOT NULL,
	unpriced_calls BIGINT NOT NULL,
	estimated_calls BIGINT NOT NULL,
	CONSTRAINT pk_person_usage PRIMARY KEY (organization_id, day, started_by, agent_id, model),
	CONSTRAINT fk_person_usage_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE TABLE console_session (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	holder TEXT NOT NULL,
	provider_id TEXT,
	created_at BIGINT NOT NULL,
	last_seen_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	address TEXT,
	user_agent TEXT,
	CONSTRAINT pk_console_session PRIMARY KEY (id),
	CONSTRAINT fk_console_session_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE INDEX ix_console_session_organization_id_holder_created_at_id ON console_session (organization_id, holder, created_at, id);
CREATE TABLE custom_role (
	organization_id TEXT NOT NULL,
	name TEXT NOT NULL,
	description TEXT NOT NULL,
	permissions TEXT NOT NULL,
	version INTEGER NOT NULL,
	created_at BIGINT NOT NULL,
	changed_at BIGINT NOT NULL,
	CONSTRAINT pk_custom_role PRIMARY KEY (organization_id, name),
	CONSTRAINT fk_custom_role_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
);
CREATE TABLE impersonation (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	actor TEXT NOT NULL,
	user_id TEXT NOT NULL,
	reason TEXT NOT NULL,
	token_hash TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	ended_at BIGINT,
	CONSTRAINT pk_impersonation PRIMARY KEY (id),
	CONSTRAINT fk_impersonation_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE,
	CONSTRAINT fk_impersonation_user_id_user_account FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_impersonation_token_hash UNIQUE (token_hash)
);
CREATE INDEX ix_impersonation_user_id ON impersonation (user_id);
CREATE INDEX ix_impersonation_organization_id_created_at ON impersonation (organization_id, created_at);
CREATE TABLE "webhook_delivery" (
	id TEXT NOT NULL,
	organization_id TEXT NOT NULL,
	run_id TEXT,
	event TEXT NOT NULL,
	receiver TEXT NOT NULL,
	body TEXT NOT NULL,
	state TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	retried_after INTEGER NOT NULL,
	last_status INTEGER,
	last_error TEXT,
	created_at BIGINT NOT NULL,
	next_attempt_at BIGINT,
	delivered_at BIGINT,
	push_config_id TEXT,
	workflow_run_id TEXT,
	server_id TEXT,
	CONSTRAINT pk_webhook_delivery PRIMARY KEY (id),
	CONSTRAINT fk_webhook_delivery_run_id_run FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_webhook_delivery_workflow_run_id_workflow_run FOREIGN KEY(workflow_run_id) REFERENCES workflow_run (id) ON DELETE CASCADE,
	CONSTRAINT fk_webhook_delivery_server_id_mcp_server FOREIGN KEY(server_id) REFERENCES mcp_server (id) ON DELETE CASCADE
);
CREATE INDEX ix_webhook_delivery_run_id_created_at_id ON webhook_delivery (run_id, created_at, id);
CREATE INDEX ix_webhook_delivery_open ON webhook_delivery (next_attempt_at, id) WHERE state IN ('pending', 'delivering');
CREATE INDEX ix_webhook_delivery_workflow_run_id ON webhook_delivery (workflow_run_id);
CREATE INDEX ix_webhook_delivery_server_id ON webhook_delivery (server_id);
CREATE INDEX ix_webhook_delivery_inbox ON webhook_delivery (organization_id, created_at, id) WHERE event IN ('approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined', 'thread.quarantined');
CREATE INDEX ix_thread_forked_from ON thread (forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX ix_audit_event_decisions ON audit_event (organization_id, at, id) WHERE action IN ('tool.approval_given', 'tool.approved', 'tool.denied', 'run.question_answered', 'workflow.run_resumed', 'mcp_server.tool_approved', 'mcp_server.tool_rejected', 'thread.released', 'mcp_server.authorized');
CREATE TABLE tool_usage (
	organization_id TEXT NOT NULL,
	day INTEGER NOT NULL,
	tool TEXT NOT NULL,
	calls BIGINT NOT NULL,
	failed_calls BIGINT NOT NULL,
	blocked_calls BIGINT NOT NULL,
	duration_ms BIGINT NOT NULL,
	CONSTRAINT pk_tool_usage PRIMARY KEY (organization_id, day, tool),
	CONSTRAINT fk_tool_usage_organization_id_organization FOREIGN KEY(organization_id) REFERENCES organization (id) ON DELETE CASCADE
)
 WITHOUT ROWID
;
CREATE INDEX ix_webhook_delivery_organization_id_created_at_id ON webhook_delivery (organization_id, created_at, id);
CREATE INDEX ix_thread_team ON thread (organization_id, team) WHERE team IS NOT NULL;
CREATE INDEX ix_webhook_delivery_notices ON webhook_delivery (organization_id, created_at, id) WHERE event IN ('approval.requested', 'workflow_run.question_asked', 'mcp_server.tool_quarantined', 'thread.quarantined', 'run.question_asked', 'run.client_tool_called', 'account.required', 'mcp_server.authorization_required');
CREATE INDEX ix_run_error ON run (organization_id, error_code, created_at, id) WHERE error_code IS NOT NULL;
CREATE INDEX ix_run_organization_id_requested_by_created_at_id ON run (organization_id, requested_by, created_at, id);
CREATE INDEX ix_mcp_tool_definition_standing ON mcp_tool_definition (server_id, standing, position) WHERE standing IS NOT NULL;
CREATE INDEX ix_workflow_run_team ON workflow_run (organization_id, team) WHERE team IS NOT NULL;
