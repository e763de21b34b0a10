import { AUDIT_ACTIONS, type AuditAction } from '../keys/audit/audit-entry.ts';
import { DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE } from '../keys/page.ts';

const ACTION_MEANINGS: Readonly<Record<AuditAction, string>> = {
  CREATE: 'A key was created, or put back.',
  UPDATE: 'A key was changed.',
  DELETE: 'A key was deleted.',
  ENABLE: 'A key was switched on.',
  DISABLE: 'A key was switched off.',
  ROTATE: 'A key got a new secret.',
  ROTATE_ACTIVATE: 'The grace of the secret before began.',
  ROTATE_FINISH: 'The secret before was ended.',
  ROTATE_ROLLBACK: 'The new secret was ended.',
  IMPORT: 'A key was imported.',
  REFUSE: 'A request was refused. Each kind is written down once a minute, and its repetitions as one number.',
};

/** The part of the schema that is about the audit log. */
export const AUDIT_TYPE_DEFS = `
extend type Query {
  "What was done by whom, the newest first."
  auditLog(
    "How many entries at most, up to ${MAX_PAGE_SIZE}."
    first: Int = ${DEFAULT_PAGE_SIZE}
    "The endCursor of the page before."
    after: String
    "The id or the name of the key that was changed."
    key: String
    "The id or the name of the key that did it, or the name of the user."
    actor: String
    "What was done."
    action: AuditAction
    "Only from this time on."
    since: DateTime
    "Only before this time."
    until: DateTime
  ): AuditLogConnection! @requires(resource: LOGS, action: READ_ANY)
}

"""What was done."""
enum AuditAction {
${AUDIT_ACTIONS.map((action) => `  "${ACTION_MEANINGS[action]}"\n  ${action}`).join('\n')}
}

"""What kind of actor it was."""
enum AuditActorKind {
  "A user of the command line."
  CLI
  "A key."
  KEY
  "A request without a valid key."
  REQUEST
}

"""Who did it."""
type AuditActor {
  "Which kind of actor."
  kind: AuditActorKind!
  "The id of the key."
  id: ID
  "The name of the user or of the key, or the prefix of the secret that was refused."
  name: String
}

"""A field of a key that was changed."""
type AuditChange {
  "The field."
  field: String!
  "The value before, as JSON; null where there was no key."
  before: String
  "The value after, as JSON; null where there is no key any more."
  after: String
}

"""An entry of the audit log. It never holds a secret."""
type AuditEntry {
  "Its place in the log, from 1 on and without gaps."
  number: Int!
  "When it was done."
  at: DateTime!
  "Who did it."
  actor: AuditActor!
  "What was done."
  action: AuditAction!
  "The id of the key that was changed."
  keyId: ID
  "The name of that key at the time."
  keyName: String
  "What changed."
  changes: [AuditChange!]!
  "SHA-256 over this entry and the hash of the one before."
  hash: String!
}

"""A page of the audit log, by the Relay cursor specification."""
type AuditLogConnection {
  "The entries with their cursors."
  edges: [AuditLogEdge!]!
  "Where the page stands in the log."
  pageInfo: PageInfo!
}

"""An entry in a page."""
type AuditLogEdge {
  "The entry."
  node: AuditEntry!
  "The place after this entry."
  cursor: String!
}
`;
