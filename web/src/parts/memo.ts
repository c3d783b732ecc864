// Renders a component again only if a property has changed by identity. Preact's own memo is part of a much larger
// compatibility layer.
import { Component, h, type ComponentChildren, type FunctionComponent } from "preact";

export function memo<P extends object>(render: (props: P) => ComponentChildren): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const before = this.props as Record<string, unknown>;
      return Object.entries(next).some(([name, value]) => before[name] !== value);
    }
    override render(): ComponentChildren {
      return render(this.props as P);
    }
  }
  return (props) => h(Memo as never, props as never);
}
