import type { Server } from '../../keys/operations/index.ts';
import { formatCursor } from '../../keys/service/index.ts';
import { type Attestation, readAttestation } from './attestation.ts';
import { REQUESTS } from './requests.ts';
import type { ReviewedPage } from './reviewed-keys.ts';

/** Keys at a time. With all their permissions, twice as many could exceed the cost limit of a request. */
const REVIEWED_KEYS = 50;

export const attestReview = (server: Server, { input }: { input: Attestation }): Promise<unknown> =>
  server.ask(REQUESTS.attestReview, { input: readAttestation(input) });

export async function reviewedKeys(server: Server, { after }: { after: string | null }): Promise<ReviewedPage> {
  const asked = { first: REVIEWED_KEYS, after: after ?? undefined };
  const { keys, hasNextPage } = await server.ask(REQUESTS.reviewedKeys, asked);
  const last = keys.at(-1);
  return { keys, next: hasNextPage && last ? formatCursor(last.apiKey) : null };
}
