import type { Server } from '../../keys/operations/index.ts';
import { type Attestation, readAttestation } from './attestation.ts';
import { REQUESTS } from './requests.ts';

export const attestReview = (server: Server, { input }: { input: Attestation }): Promise<unknown> =>
  server.ask(REQUESTS.attestReview, { input: readAttestation(input) });
