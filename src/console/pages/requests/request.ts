import type { ResourceActions } from '../../../keys/permissions/index.ts';

/** The fields of a request that pages show. */
export const REQUEST_FIELDS = `requestId flow clientId clientName roles permissions { resource actions } keyExpiresIn
  address createdAt expiresAt status keyName`;

/** What an application asks for. */
export interface Request {
  readonly requestId: string;
  readonly flow: 'DEVICE' | 'CODE';
  readonly clientId: string;
  readonly clientName: string;
  readonly roles: readonly string[];
  readonly permissions: readonly ResourceActions[];
  readonly keyExpiresIn: string | null;
  readonly address: string | null;
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly status: 'PENDING' | 'APPROVED' | 'DENIED';
  readonly keyName: string | null;
}
