import { formatTime, requirePastTime } from '../../keys/basics/index.ts';
import type { Server } from '../../keys/operations/index.ts';
import type { Contained } from './contain.ts';
import { REQUESTS } from './requests.ts';

export function containKey(
  server: Server,
  { key: name, since: text, dryRun }: { key: string; since?: string | undefined; dryRun?: boolean },
): Promise<Contained> {
  const since = text === undefined ? undefined : formatTime(requirePastTime(text, Date.now()));
  return server.ask(REQUESTS.containKey, { input: { name, since, dryRun } });
}
