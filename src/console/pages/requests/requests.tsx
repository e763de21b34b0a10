import type { Pages } from '../../page-routes.ts';
export function addRequests(_pages: Pages): void {}
