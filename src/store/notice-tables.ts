/** The one row of `notice_state`: how far the store was looked through for notices, and who does so. */
export interface NoticeStateTable {
  one: 1;
  /** The last entry of the audit log that was looked at. */
  log_number: number;
  /** When the store was last looked through, in milliseconds since 1970, as the next three times are. */
  seen_at: number;
  /** See `EndingsPosition`, as JSON. */
  endings: string;
  /** See `NoticedRefusals`, as JSON. */
  refusals: string;
  /** What identifies the webhook that wants no notices any more. */
  gone: string | null;
  /** The process that collects and delivers, by a random id. */
  holder: string | null;
  leased_until: number;
  failed_at: number | null;
  /** Why the last attempt that failed did so. */
  failure: string | null;
  delivered_at: number | null;
}

/** A row of `notice_outbox`: a notice that was not delivered yet. Times are milliseconds since 1970. */
export interface NoticeOutboxTable {
  id: string;
  type: string;
  created_at: number;
  /** What is sent, as JSON. */
  body: string;
  attempts: number;
  next_at: number;
}
