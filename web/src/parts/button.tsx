// An icon button with a name for tooltips and screen readers.
import type { ComponentProps } from "preact";
import { Icon, type IconName } from "./icons";

interface Props extends Omit<ComponentProps<"button">, "icon"> {
  icon: IconName;
  name: string;
}

export function IconButton({ icon, name, ...rest }: Props) {
  return (
    <button type="button" class="icon-button" aria-label={name} title={name} {...rest}>
      <Icon name={icon} />
    </button>
  );
}
