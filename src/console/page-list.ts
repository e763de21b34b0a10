import type { Action } from '../keys/permissions/catalog.ts';

/** A page that the navigation leads to. */
export interface ListedPage {
  /** Its address under `/console/`. */
  readonly path: string;
  readonly title: string;
  /** It is shown to keys that have one of these. */
  readonly needs: readonly `${string}:${Action}`[];
}

/** The pages in the order of the navigation. The first that a key may see is the one that it begins with. */
export const PAGES: readonly ListedPage[] = [
  { path: 'keys', title: 'Keys', needs: ['API_KEY:READ_OWN'] },
  { path: 'requests', title: 'Requests', needs: ['API_KEY:CREATE_OWN'] },
  { path: 'audit-log', title: 'Audit log', needs: ['LOGS:READ_ANY'] },
  { path: 'routes', title: 'Routes', needs: ['CONFIG:READ_ANY'] },
  { path: 'limits', title: 'Limits', needs: ['CONFIG:READ_ANY'] },
  { path: 'health', title: 'Health', needs: ['INFO:READ_ANY'] },
];
