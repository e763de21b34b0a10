import type { LeaseGrant, LeaseRequest } from './lease.ts';

/** Where the processes of a store share what is used of limits. */
export interface LimitStore {
  /**
   * Grants requests for leases in one transaction, one after another, as `grantLease` does.
   * @returns the grants in the order of the requests; undefined for one whose limits are of a key that is gone
   * @throws KeysError STORE_…, as a rejection
   */
  lease(requests: readonly LeaseRequest[]): Promise<(LeaseGrant | undefined)[]>;
}
