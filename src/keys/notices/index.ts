/** Of what a webhook is told, and when. */
export * from './collect.ts';
export {
  DEFAULT_NOTICES,
  HISTORY_MS,
  invalidWebhook,
  MAX_REFUSED_OFTEN,
  nextAttempt,
  type Notice,
  NOTICE_TYPES,
  type NoticeSettings,
  type NoticeType,
  shownWebhook,
  testNotice,
  type WaitingNotice,
} from './notice.ts';
