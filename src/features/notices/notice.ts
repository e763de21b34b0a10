import { hash } from 'node:crypto';
import { formatTime, isLoopbackHost, printable, UNIT_MS } from '../../keys/basics/index.ts';

/** The types of notices. */
export const NOTICE_TYPES = [
  'key.created',
  'key.deleted',
  'key.ending',
  'key.ended',
  'key.leaked',
  'key.reused',
  'key.refused_often',
] as const;
/** The type of an event about a key. */
export type NoticeType = (typeof NOTICE_TYPES)[number];

/** How long notices can go uncollected. After that, collecting starts again without the events in between. */
export const HISTORY_MS = 30 * UNIT_MS.d;

/** A notice as it is sent, the same in each attempt. */
export interface Notice {
  /** The same for the same event, even if it is found twice, so that receivers recognize repetitions. */
  readonly id: string;
  readonly type: NoticeType | 'test';
  /** The time of the event, in milliseconds since 1970. */
  readonly at: number;
  /** `{ type, timestamp, data }`, as JSON. */
  readonly body: string;
}

/** A notice waiting for delivery. */
export interface WaitingNotice extends Notice {
  /** How many attempts were made. */
  readonly attempts: number;
}

/**
 * Makes a notice.
 * @param event identifies the event among those of its type
 */
export function noticeOf(
  type: Notice['type'],
  { event, at, data }: { event: readonly (string | number)[]; at: number; data: object },
): Notice {
  const id = `msg_${hash('sha256', JSON.stringify([type, ...event]), 'hex').slice(0, 32)}`;
  return { id, type, at, body: JSON.stringify({ type, timestamp: formatTime(at), data }) };
}

/** The result of an attempt to deliver a notice. */
export type NoticeAnswer =
  | { readonly is: 'taken'; readonly status: number }
  /** The receiver refuses further notices. */
  | { readonly is: 'gone'; readonly status: number; readonly failure: string }
  | {
      readonly is: 'failed';
      /** Undefined if there was no answer. */
      readonly status: number | undefined;
      readonly failure: string;
      readonly retryAfterMs: number | undefined;
    };

/** A way to deliver notices. */
export interface NoticeChannel {
  /**
   * Reads its settings when a server starts or reloads. The returned function sends a notice once and resolves without
   * a value if it was accepted. If it throws, the notice is sent again later; receivers recognize repetitions by the
   * id.
   * @throws an error that says what is wrong with the settings
   */
  open(
    settings: Pick<NoticeSettings, 'url' | 'secretFile'>,
    env: NodeJS.ProcessEnv,
  ): (
    notice: Pick<Notice, 'id' | 'type' | 'body'>,
    options: { readonly signal: AbortSignal; readonly timeoutMs: number },
  ) => Promise<NoticeAnswer | void>;
}

/** Channels by their names, each loaded on first use. */
export type NoticeChannels = Readonly<Record<string, () => Promise<NoticeChannel>>>;

/** The receiver of notices, and the events that it gets. */
export interface NoticeSettings {
  /** The name of the channel that delivers notices. Default: `webhook`. */
  readonly channel?: string;
  /** The address of the webhook. */
  readonly url: string;
  /** The absolute path of a file with the secret that signs; undefined for `SVC_API_NOTICES_SECRET`. */
  readonly secretFile: string | undefined;
  readonly events: readonly NoticeType[];
  /** The number of refused requests of a key within an hour that counts as often. */
  readonly refusedOften: number;
}

/** Defaults of the settings. */
export const DEFAULT_NOTICES = { events: NOTICE_TYPES, refusedOften: 100 } as const;
/** The largest `refusedOften`. */
export const MAX_REFUSED_OFTEN = 1_000_000_000;

const MAX_LENGTH = 2000;

/**
 * The problem with the address of a webhook; undefined if there is none. The address can hold a secret, so it is not
 * repeated.
 */
export function invalidWebhook(text: string): string | undefined {
  if (text.length > MAX_LENGTH || !URL.canParse(text) || text !== text.trim())
    return 'The address of the webhook is not a URL. Write it as https://hooks.example.org/svc-api.';
  const { protocol, hostname, username, password, hash } = new URL(text);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopbackHost(hostname)))
    return (
      'The address of the webhook must begin with https://, or with http:// on loopback, such as ' +
      'http://127.0.0.1:8080/.'
    );
  if (username || password)
    return 'The address of the webhook has a user name or password. Leave them out: the receiver checks the signature instead.';
  return hash || text.includes('#') ? 'The address of the webhook has a fragment (#). Leave it out.' : undefined;
}

/** The address of a webhook without parts that may be secret. */
export function shownWebhook(url: string): string {
  return printable(new URL(url).origin, 300);
}

/** The delay before the next attempt, for each failed one, as Standard Webhooks proposes. */
export const RETRY_MS = [
  5 * UNIT_MS.s,
  5 * UNIT_MS.m,
  30 * UNIT_MS.m,
  2 * UNIT_MS.h,
  5 * UNIT_MS.h,
  10 * UNIT_MS.h,
  10 * UNIT_MS.h,
] as const;
/** Each delay varies by up to this part of it, so that notices that failed together do not return together. */
const JITTER = 0.2;

/**
 * When the next attempt is due, in milliseconds since 1970; undefined to give up.
 * @param attempts the number made so far
 * @param random from 0 up to 1
 */
export function nextAttempt(attempts: number, now: number, random: number): number | undefined {
  const wait = RETRY_MS[attempts - 1];
  return wait === undefined ? undefined : Math.round(now + wait * (1 - JITTER + 2 * JITTER * random));
}

/**
 * The notice for trying a webhook: about no key, and never a repetition.
 * @param test.id a random one
 * @param test.at milliseconds since 1970
 * @param test.by the user of the machine who tries it
 */
export function testNotice({ id, at, by }: { id: string; at: number; by: string }): Notice {
  return noticeOf('test', { event: [id], at, data: { actor: { kind: 'CLI', id: null, name: by } } });
}
