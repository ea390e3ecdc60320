{# The keys of rows of `model` that `to` has not. All of `to` is looked at, in runs on a sample and by
   --sample too: a key that is only not in the sample is no failure. #}
{% macro qbeast__test_relationships(model, column_name, to, field) %}
  select child.from_field
  from (select {{ column_name }} as from_field from {{ model }} where {{ column_name }} is not null) child
  left anti join (
    select {{ field }} as to_field from {{ to.render() if to.render is defined else to }}
  ) parent on child.from_field = parent.to_field
{% endmacro %}
