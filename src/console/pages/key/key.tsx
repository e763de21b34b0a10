import type { Pages } from '../../page-routes.ts';
import { addContainment } from './contain.tsx';
import { addDeletion } from './deletion.tsx';
import { addEditing } from './editing.tsx';
import { addNarrowing } from './narrow.tsx';
import { answerOverview } from './overview.tsx';
import { addRotation } from './rotation.tsx';
import { addSwitching } from './switching.tsx';

/** Adds the page of one key, and those that change it. */
export function addKeyPage(pages: Pages): void {
  pages.get('keys/:id', answerOverview);
  addSwitching(pages);
  addNarrowing(pages);
  addEditing(pages);
  addRotation(pages);
  addDeletion(pages);
  addContainment(pages);
}
