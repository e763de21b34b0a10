/** Recipients of changes: edges that answer without a store, with their leases and reports, and webhooks. */
export * from './edges.ts';
export * from './reports.ts';
export * from './collect.ts';
export {
  DEFAULT_NOTICES,
  HISTORY_MS,
  invalidWebhook,
  MAX_REFUSED_OFTEN,
  nextAttempt,
  type Notice,
  type NoticeAnswer,
  type NoticeChannel,
  type NoticeChannels,
  NOTICE_TYPES,
  type NoticeSettings,
  type NoticeType,
  shownWebhook,
  testNotice,
  type WaitingNotice,
} from './notice.ts';
