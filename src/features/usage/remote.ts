import { formatTime, noKeyWithId } from '../../keys/basics/index.ts';
import type { Server } from '../../keys/operations/index.ts';
import { REQUESTS } from './requests.ts';
import type { Suggestion } from './suggest.ts';
import { readUsageRequest, type UsageByPeriod, type UsageRequest } from './usage.ts';

export async function keyUsage(
  server: Server,
  { id, request }: { id: string; request: UsageRequest },
): Promise<UsageByPeriod> {
  const range = readUsageRequest(request, Date.now());
  const variables = { id, by: range.by, from: formatTime(range.from), to: formatTime(range.to) };
  return { ...range, periods: found(await server.ask(REQUESTS.keyUsage, variables), id) };
}

export async function keySuggestion(server: Server, { id }: { id: string }): Promise<Suggestion> {
  return found(await server.ask(REQUESTS.keySuggestion, { id }), id);
}

/** The answer about a key that was there a moment ago. @throws KeysError NOT_FOUND */
function found<Answer>(data: Answer | null, id: string): Answer {
  if (data !== null) return data;
  throw noKeyWithId(id);
}
