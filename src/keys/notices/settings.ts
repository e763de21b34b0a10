import { LOOPBACK, Networks } from '../networks.ts';
import { printable } from '../text.ts';
import { NOTICE_TYPES, type NoticeType } from './notice.ts';

/** Who is told of what. */
export interface NoticeSettings {
  /** The address of the webhook. */
  readonly url: string;
  /** The absolute path of a file with the secret that signs; undefined for `SVC_API_NOTICES_SECRET`. */
  readonly secretFile: string | undefined;
  readonly events: readonly NoticeType[];
  /** How many refused requests of a key, within an hour of the clock, are often. */
  readonly refusedOften: number;
}

/** What applies where the settings say nothing. */
export const DEFAULT_NOTICES = { events: NOTICE_TYPES, refusedOften: 100 } as const;
/** What `refusedOften` can be at most. */
export const MAX_REFUSED_OFTEN = 1_000_000_000;

const LOOPBACK_NETWORKS = new Networks(LOOPBACK);
const MAX_LENGTH = 2000;

/** What is wrong with the address of a webhook; undefined if nothing is. It may hold a secret, and is not repeated. */
export function invalidWebhook(text: string): string | undefined {
  if (text.length > MAX_LENGTH || !URL.canParse(text) || text !== text.trim())
    return 'The address of the webhook is no URL. Write it as https://hooks.example.org/svc-api.';
  const { protocol, hostname, username, password, hash } = new URL(text);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    return (
      'The address of the webhook must begin with https://, or with http:// on loopback, such as ' +
      'http://127.0.0.1:8080/.'
    );
  if (username || password)
    return 'The address of the webhook has a user name or password. Its receiver checks the signature in their place.';
  return hash || text.includes('#') ? 'The address of the webhook has a fragment (#). Leave it out.' : undefined;
}

/** The address of a webhook without what may be secret in it. */
export function shownWebhook(url: string): string {
  return printable(new URL(url).origin, 300);
}

function isLoopback(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  return address === 'localhost' || LOOPBACK_NETWORKS.includes(address);
}
