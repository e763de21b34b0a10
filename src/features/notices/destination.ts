import type { OwnFeature } from '../../feature.ts';
import { formatList, KeysError, printable, proxyNote, suggestion } from '../../keys/basics/index.ts';
import type { NoticeAnswer, NoticeChannel, NoticeChannels, NoticeSettings, WaitingNotice } from './notice.ts';

/** A receiver of notices, with its settings as they are now. */
export interface Destination {
  readonly url: string;
  readonly settings: NoticeSettings;
  readonly send: ReturnType<NoticeChannel['open']>;
}

/** Opens the channel of a feature that the settings name. @throws KeysError CONFIG_…; what the channel throws */
export async function readDestination(
  settings: NoticeSettings,
  env: NodeJS.ProcessEnv,
  features: readonly OwnFeature[],
): Promise<Destination> {
  const channels: NoticeChannels = Object.assign({}, ...features.map(({ notices }) => notices));
  const { url, channel = 'webhook' } = settings;
  const load = Object.hasOwn(channels, channel) ? channels[channel] : undefined;
  if (!load) {
    const names = Object.keys(channels);
    throw new KeysError(
      'CONFIG_INVALID',
      `"channel" under "notices" is "${printable(channel)}", which no feature has. ${suggestion(channel, names)}` +
        `The channels are ${formatList(names)}.`,
    );
  }
  return { url, settings, send: (await load()).open(settings, env) };
}

/** Time-out of an attempt, as Standard Webhooks proposes. */
export const TIMEOUT_MS = 15_000;

/** The messages of an error and its causes, because the message of `fetch` alone is not useful. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  return cause instanceof Error ? `${message} (${reasonOf(cause)})` : message;
}

/** Sends a notice once, and waits for the channel no longer than it should take. It never throws. */
export async function attempt(
  { url, send }: Pick<Destination, 'url' | 'send'>,
  notice: Pick<WaitingNotice, 'id' | 'type' | 'body'>,
  { signal, timeoutMs = TIMEOUT_MS }: { signal: AbortSignal; timeoutMs?: number | undefined },
): Promise<NoticeAnswer> {
  const ends = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = () => {
    const note = /^https?:/.test(url) ? proxyNote(url) : '';
    const late = `no answer within ${timeoutMs / 1000} seconds${note && `.${note}`}`;
    reject(new Error(signal.aborted ? 'the attempt was ended' : late));
  };
  ends.addEventListener('abort', end);
  if (ends.aborted) end();
  try {
    return (await Promise.race([send(notice, { signal: ends, timeoutMs }), ended])) ?? { is: 'taken', status: 200 };
  } catch (error) {
    const failure = printable(reasonOf(error), 200);
    return { is: 'failed', status: undefined, failure, retryAfterMs: undefined };
  } finally {
    ends.removeEventListener('abort', end);
  }
}
