/** Delivers notices by channels: signs, sends, tries again. */
export type { Notice, NoticeSettings, NoticeType } from './notice.ts';
export { attempt, readDestination } from './destination.ts';
